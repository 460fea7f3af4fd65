import { installPython } from '../../support/python-environment.mjs';

await installPython('runpod', new URL('requirements.txt', import.meta.url));
