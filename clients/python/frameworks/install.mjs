import { installPython } from '../../support/python-environment.mjs';

await installPython('frameworks', new URL('requirements.txt', import.meta.url));
