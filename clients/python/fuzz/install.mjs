import { installPython } from '../../support/python-environment.mjs';

await installPython('fuzz', new URL('requirements.txt', import.meta.url));
