import { installPython } from '../../support/python-environment.mjs';

await installPython('openai', new URL('requirements.txt', import.meta.url));
