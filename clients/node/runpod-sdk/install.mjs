import { installFromNpm } from '../../support/npm-client.mjs';

await installFromNpm('runpod-sdk', new URL('package.json', import.meta.url));
