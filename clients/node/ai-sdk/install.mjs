import { installFromNpm } from '../../support/npm-client.mjs';

await installFromNpm('ai-sdk', new URL('package.json', import.meta.url));
