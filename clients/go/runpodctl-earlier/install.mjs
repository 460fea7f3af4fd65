import { installFromGo } from '../../support/go-client.mjs';

await installFromGo('runpodctl-earlier', new URL('version.json', import.meta.url));
