import { installFromNpm } from '../../support/npm-client.mjs';

await installFromNpm('mcp-server', new URL('package.json', import.meta.url));
