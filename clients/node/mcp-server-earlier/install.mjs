import { installFromNpm } from '../../support/npm-client.mjs';

await installFromNpm('mcp-server-earlier', new URL('package.json', import.meta.url));
