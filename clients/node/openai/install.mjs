import { installFromNpm } from '../../support/npm-client.mjs';

await installFromNpm('openai-node', new URL('package.json', import.meta.url));
