// Installs what is missing, so that `npm start` and `npm test` work in a fresh clone.
// Runs on any Node from 20 on; everything after it runs on the Node that it installs.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';

const installed = 'node_modules/.package-lock.json';
const wanted = 'package-lock.json';

function upToDate() {
  if (!existsSync(installed) || !existsSync('node_modules/.bin/node')) return false;
  return statSync(installed).mtimeMs >= statSync(wanted).mtimeMs;
}

if (!upToDate()) {
  process.stdout.write('installing dependencies (first run only)\n');
  // Not `npm ci`: it insists on the packages of every other platform, which not every registry has.
  const done = spawnSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    stdio: 'inherit',
  });
  if (done.status !== 0) {
    process.stderr.write(
      'npm install failed; see the lines above. With no network, copy node_modules from another clone.\n',
    );
    process.exit(done.status ?? 1);
  }
}
