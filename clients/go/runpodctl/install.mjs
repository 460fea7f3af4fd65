import { installFromGo, installFromGoSource } from '../../support/go-client.mjs';

// Not every Go module proxy has runpodctl: an archive of its public source does as well.
const archive = process.env['BERTH_RUNPODCTL_SOURCE'];
if (archive === undefined) await installFromGo('runpodctl', new URL('version.json', import.meta.url));
else await installFromGoSource('runpodctl', 'runpodctl', archive);
