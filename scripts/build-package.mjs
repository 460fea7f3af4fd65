// Builds the package in the current folder for `npm pack`: JavaScript and types into dist/, beside it the
// licence and what else the package brings along. `--clean` removes all of it again, so that a clone keeps no
// second copy. The clone itself never runs what is built here. With BERTH_PACKAGE_FOR_TESTS=1 it does not check types
// and leaves out the site of the documentation: both take longest, and other steps of CI cover them.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const name = basename(process.cwd());
const isForTests = process.env['BERTH_PACKAGE_FOR_TESTS'] === '1';

/**
 * entries: what is compiled, with all it imports. assets: files beside the sources that the program reads.
 * copies: files and folders of the repository that go into the package as they are.
 * @type {Record<string, { entries: string[], assets: string[], copies: string[] }>}
 */
const PACKAGES = {
  cloud: {
    entries: ['src/cli/main.ts', 'src/engines/process/run-handler.ts'],
    assets: ['src/**/*.py', 'src/**/*.sh', 'src/**/*.html'],
    copies: ['LICENSE', 'README.md', 'examples'],
  },
  worker: {
    entries: ['src/worker.ts', 'src/ping-thread-main.js'],
    assets: [],
    copies: ['LICENSE'],
  },
};

const wanted = PACKAGES[name];
if (wanted === undefined) {
  process.stderr.write(
    `run this in packages/${Object.keys(PACKAGES).join(' or packages/')}, not in ${process.cwd()}\n`,
  );
  process.exit(1);
}
for (const path of ['dist', ...wanted.copies]) rmSync(path, { recursive: true, force: true });
if (!process.argv.includes('--clean')) build(wanted);

/** @param {{ entries: string[], assets: string[], copies: string[] }} parts */
function build({ entries, assets, copies }) {
  execFileSync(process.execPath, ['scripts/install.mjs'], { cwd: root, stdio: ['ignore', 2, 2] });
  compile(entries, 'src', 'dist', true);
  for (const file of globSync(assets)) {
    const target = file.replace(/^src/, 'dist');
    copyFileSync(file, target);
    chmodSync(target, statSync(file).mode);
  }
  for (const path of copies) cpSync(join(root, path), path, { recursive: true });
  if (copies.includes('examples')) compileExamples();
  if (name !== 'cloud') return;
  const run = (/** @type {string[]} */ ...words) =>
    execFileSync(process.execPath, words, { cwd: root, stdio: ['ignore', 2, 2] });
  run('scripts/build-console.mjs');
  cpSync(join(root, 'packages/console/dist'), 'dist/console', { recursive: true });
  if (!isForTests) {
    run('node_modules/vitepress/bin/vitepress.js', 'build', 'docs');
    cpSync(join(root, 'docs/.vitepress/dist'), 'dist/docs', { recursive: true });
  }
  cpSync(join(root, 'packages/worker-python/src/berth_worker'), 'dist/berth_worker', {
    recursive: true,
    filter: (path) => !path.includes('__pycache__'),
  });
}

/** Node strips no types below node_modules: the examples that the server runs by name are compiled. */
function compileExamples() {
  cpSync('examples', 'dist/examples', { recursive: true, filter: (path) => !path.endsWith('.ts') });
  compile(globSync('examples/*/*.ts'), 'examples', 'dist/examples', false);
  for (const file of globSync('dist/examples/*/berth.json'))
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/\.ts"/g, '.js"'));
}

/**
 * @param {string[]} files
 * @param {string} rootDir
 * @param {string} outDir
 * @param {boolean} declaration
 */
function compile(files, rootDir, outDir, declaration) {
  const config = resolve(`tsconfig.${basename(outDir)}.json`);
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        noEmit: false,
        noCheck: isForTests,
        incremental: false,
        tsBuildInfoFile: null,
        rewriteRelativeImportExtensions: true,
        checkJs: false,
        rootDir,
        outDir,
        declaration,
      },
      include: [],
      files,
    }),
  );
  try {
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', config], {
      stdio: ['ignore', 2, 2],
    });
  } finally {
    rmSync(config);
  }
}
