import { installFromNpm } from '../../support/npm-client.mjs';

await installFromNpm('s3', new URL('package.json', import.meta.url));
