import { installPython } from '../../support/python-environment.mjs';

await installPython('aws', new URL('requirements.txt', import.meta.url));
