import { installPython } from '../../support/python-environment.mjs';

await installPython('jupyter', new URL('requirements.txt', import.meta.url));
