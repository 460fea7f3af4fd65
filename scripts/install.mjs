// Installs what is missing, so that `npm start` and `npm test` work in a fresh clone. With --production only
// what the server runs on. Runs on any Node from 20 on; everything after it runs on the Node that it
// installs.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const INSTALLED = 'node_modules/.package-lock.json';
const LOCK = 'package-lock.json';
/** A program that only development needs: where it is, the development packages are installed. */
const DEVELOPMENT = 'node_modules/.bin/tsc';

const production = process.argv.includes('--production') && !existsSync(DEVELOPMENT);
if (!upToDate()) install();

function upToDate() {
  if (!existsSync(INSTALLED) || !existsSync('node_modules/.bin/node')) return false;
  if (!production && !existsSync(DEVELOPMENT)) return false;
  return statSync(INSTALLED).mtimeMs >= statSync(LOCK).mtimeMs;
}

function install() {
  process.stdout.write(
    production
      ? 'installing dependencies, about 150 MB: half a minute with a fast network\n'
      : 'installing development dependencies: a minute or two with a fast network\n',
  );
  const omit = production ? ['--omit=dev', '--omit=optional'] : [];
  const { status } = spawnSync(
    'npm',
    ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error', ...omit],
    { stdio: 'inherit' },
  );
  if (status !== 0) {
    process.stderr.write(
      'npm install failed; see the lines above. Without a network, copy node_modules from another clone.\n',
    );
    process.exit(status ?? 1);
  }
  // The package `node` links its program from a package inside it, which also has 68 MB of headers and
  // manuals.
  const inner = 'node_modules/node/node_modules';
  for (const name of existsSync(inner) ? readdirSync(inner) : [])
    if (name.startsWith('node-'))
      for (const unused of ['include', 'share'])
        rmSync(`${inner}/${name}/${unused}`, { recursive: true, force: true });
}
