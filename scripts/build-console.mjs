// Builds the web console into packages/console/dist, unless the existing build is from the same sources.
//   --quiet-failure   says in one line why it could not be built, and exits with 0: the server works without it
// Runs on any Node from 20 on, as `npm start` does it before anything else.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const FOLDER = 'packages/console';
const DIST = `${FOLDER}/dist`;
const STAMP = `${DIST}/sources.sha256`;
const NODE = 'node_modules/.bin/node';
/** npm puts it beside the console where another package needs another version of it. */
const VITE_PLACES = [`${FOLDER}/node_modules`, 'node_modules'].map((place) => `${place}/vite/bin/vite.js`);
const NPM_OPTIONS = ['--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
const COMPRESSED = /\.(?:js|css|svg)$/;

const sources = hashSources();
if (!existsSync(STAMP) || readFileSync(STAMP, 'utf8') !== sources) build();

function build() {
  const installsTools = findVite() === undefined;
  process.stdout.write(
    installsTools
      ? 'building the console, with tools that are removed again: about half a minute\n'
      : 'building the console: about ten seconds\n',
  );
  if (installsTools) run('npm', ['install', ...NPM_OPTIONS, '--include=dev', '-w', FOLDER]);
  run(NODE, [findVite() ?? '', 'build', '--logLevel', 'warn', FOLDER]);
  for (const name of readdirSync(`${DIST}/assets`).filter((file) => COMPRESSED.test(file)))
    compress(join(DIST, 'assets', name));
  writeFileSync(STAMP, sources);
  // The tools are 85 MB, and the console is seldom built again where it is only run.
  if (installsTools) run('npm', ['prune', ...NPM_OPTIONS, '--omit=dev', '--omit=optional']);
}

function findVite() {
  return VITE_PLACES.find((file) => existsSync(file));
}

/** @param {string} file */
function compress(file) {
  const content = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  writeFileSync(
    `${file}.br`,
    brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  );
}

/** @param {string} command @param {string[]} parameters */
function run(command, parameters) {
  const { status } = spawnSync(command, parameters, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status === 0) return;
  if (process.argv.includes('--quiet-failure')) {
    process.stdout.write('the console could not be built; everything else works without it\n');
    process.exit(0);
  }
  process.exit(status ?? 1);
}

/** Of the names and contents of everything that goes into the build. */
function hashSources() {
  const hash = createHash('sha256');
  const files = [
    ...listFiles(`${FOLDER}/src`).filter((file) => !file.endsWith('.test.ts')),
    ...['index.html', 'vite.config.ts', 'package.json'].map((name) => `${FOLDER}/${name}`),
  ];
  for (const file of files.sort()) hash.update(`${file}\n${readFileSync(file)}\n`);
  return hash.digest('hex');
}

/** @param {string} folder @returns {string[]} */
function listFiles(folder) {
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? listFiles(path) : [path]));
}
