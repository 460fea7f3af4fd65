import { installPython } from '../../support/python-environment.mjs';

await installPython('flash', new URL('requirements.txt', import.meta.url));
