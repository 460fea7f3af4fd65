// Runs the tests of the worker SDK for Python and prints `N passed, N failed` as the last line. Words narrow
// the run to test modules whose path contains one of them. Without python3 nothing runs, which fails where
// BERTH_REQUIRE_PYTHON=1.
import { spawn, spawnSync } from 'node:child_process';
import { globSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, delimiter, dirname, resolve } from 'node:path';

const PACKAGE = 'packages/worker-python';
const words = process.argv.slice(2);
const files = globSync([`${PACKAGE}/tests/test_*.py`, 'tests/python/test_*.py'])
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort();

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
// A test that is killed ends the servers and workers that it started: tests/python/process_guard.py.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, () => {
    for (const child of running) child.kill('SIGKILL');
    process.exit(1);
  });

let passed = 0;
let failed = 0;
let skipped = 0;
/** @type {string[]} */
const failedFiles = [];
if (spawnSync('python3', ['--version']).status !== 0) {
  process.stdout.write('the Python tests did not run: there is no python3\n');
  if (process.env['BERTH_REQUIRE_PYTHON'] === '1') failed = 1;
} else {
  // The tests wait more than they compute.
  const waiting = [...files];
  const runFiles = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) await runFile(file);
  };
  await Promise.all(Array.from({ length: availableParallelism() + 1 }, runFiles));
}
const list = process.env['BERTH_TEST_FAILED'];
if (list !== undefined) writeFileSync(list, failedFiles.join(' '));
process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
process.exit(failed === 0 ? 0 : 1);

/** @param {string} file */
async function runFile(file) {
  const folders = ['src', 'tests', '../../tests/python'].map((folder) => resolve(PACKAGE, folder));
  const child = spawn(
    'python3',
    ['-m', 'unittest', 'discover', '-v', '-s', dirname(file), '-p', basename(file)],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, PYTHONPATH: folders.join(delimiter), PYTHONDONTWRITEBYTECODE: '1' },
    },
  );
  running.add(child);
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => (stderr += text));
  /** @type {number | null} */
  const status = await new Promise((done) => child.on('close', done));
  running.delete(child);
  const ran = Number(/^Ran (\d+) tests? in/m.exec(stderr)?.[1] ?? 0);
  const count = (/** @type {string} */ name) =>
    Number(new RegExp(`^(?:OK|FAILED) \\(.*\\b${name}=(\\d+)`, 'm').exec(stderr)?.[1] ?? 0);
  // A module that cannot be loaded, or is killed, has run nothing and failed.
  const bad = status === 0 ? 0 : Math.max(1, count('failures') + count('errors'));
  passed += Math.max(0, ran - bad - count('skipped'));
  failed += bad;
  skipped += count('skipped');
  if (bad > 0) failedFiles.push(file);
  process.stdout.write(`${bad === 0 ? 'ok  ' : 'FAIL'} ${file}: ${ran} tests\n${bad === 0 ? '' : stderr}`);
}
