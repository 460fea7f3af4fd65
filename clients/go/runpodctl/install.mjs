import { installFromGo } from '../../support/go-client.mjs';

await installFromGo('runpodctl', new URL('version.json', import.meta.url));
