import { installPython } from '../../support/python-environment.mjs';

await installPython('runpod-earlier', new URL('requirements.txt', import.meta.url));
