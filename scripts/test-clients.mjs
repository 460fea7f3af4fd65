// Runs existing clients, unmodified, against a real Berth. A client is a folder below clients/ with an
// install.mjs, which brings it to clients/.installed/<name>/, and the test files beside it. One that cannot
// be installed here is left out, which is printed; that is a failure for those that BERTH_REQUIRE_CLIENTS names,
// by name (go/runpodctl) or by folder (node/). Words narrow the run to clients and files whose path contains
// one of them.
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, relative, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { run } from 'node:test';
import { findOrStartDocker } from '../packages/testing/src/docker-daemon.mjs';
import { endLeftoverProcesses } from './leftover-processes.mjs';
import report from './test-reporter.mjs';

/** Files that need a daemon. */
const WITH_DOCKER = /-docker\.test\.ts$/;
const FILE_LIMIT_MS = 300_000;
const MARKED = ['--import', resolve('scripts/mark-test-process.mjs')];
/** To install is work; to try a client is, for the most part, to wait. */
const INSTALLS_AT_ONCE = Math.max(2, Math.floor(availableParallelism() / 2));
const FILES_AT_ONCE = INSTALLS_AT_ONCE + 1;
/** Those that take longest start first, so that nothing waits for one of them at the end. */
const FIRST = ['python/runpod', 'python/runpod-earlier', 'python/flash'];
/** It has a limited time for its requests: little else runs by then. */
const LAST = 'python/fuzz';

/**
 * @typedef {{ name: string, folder: string, files: string[] }} Client
 * @typedef {{ passed: number, failed: number }} Count
 */

const words = process.argv.slice(2);
const clients = selectClients(globSync('clients/*/**/install.mjs').map(dirname).sort()).sort(
  (one, other) => startOrder(one) - startOrder(other),
);
if (clients.length === 0) {
  process.stderr.write(`no client matches ${words.join(' ')}\n`);
  process.exit(1);
}

/** Why a client did not run, by its name. @type {Map<string, string>} */
const missing = new Map();
const docker = clients.some((client) => client.files.some((file) => WITH_DOCKER.test(file)))
  ? await findOrStartDocker()
  : undefined;
if (docker !== undefined && 'reason' in docker)
  process.stdout.write(`the clients were not tried with Docker: ${docker.reason}\n`);
if (docker !== undefined && 'host' in docker) process.env['BERTH_TEST_DOCKER_HOST'] = docker.host;
const canRun = (/** @type {string} */ file) =>
  docker === undefined || 'host' in docker || !WITH_DOCKER.test(file);

endLeftoverProcesses((line) => process.stdout.write(line), { fileLimitMs: FILE_LIMIT_MS + 30_000 });
/** @type {Map<string, Count>} */
const counts = new Map(clients.map(({ name }) => [name, { passed: 0, failed: 0 }]));
let last = '';
for await (const text of report(events())) {
  process.stdout.write(last);
  last = text;
}
for (const { name } of clients) {
  const { passed, failed } = counts.get(name) ?? { passed: 0, failed: 0 };
  process.stdout.write(
    missing.has(name)
      ? `${name}: did not run, ${missing.get(name)}\n`
      : `${name}: ran, ${passed} passed, ${failed} failed\n`,
  );
}
process.stdout.write(last);
if (docker !== undefined && 'host' in docker) await docker.stop();
process.exit(/ 0 failed/.test(last) ? 0 : 1);

/** @param {Client} client */
function startOrder({ name }) {
  if (name === LAST) return FIRST.length + 1;
  return FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length;
}

/**
 * A word that is in the path of a client takes all its files; else those whose path has it. A folder within a
 * client's folder that is a client itself is not part of the outer one.
 * @param {string[]} folders
 * @returns {Client[]}
 */
function selectClients(folders) {
  return folders
    .map((folder) => {
      const inner = folders.filter((other) => other.startsWith(`${folder}/`));
      const own = globSync(`${folder}/**/*.test.ts`)
        .filter((file) => !inner.some((other) => file.startsWith(`${other}/`)))
        .sort();
      return {
        name: relative('clients', folder),
        folder,
        files: own.filter((file) => words.length === 0 || words.some((word) => file.includes(word))),
      };
    })
    .filter((client) => client.files.length > 0);
}

/** @param {Client} client @returns {Promise<string | undefined>} why not, in one line */
function install({ name, folder }) {
  return new Promise((done) => {
    process.stdout.write(`installing ${name}\n`);
    const child = spawn(process.execPath, [`${folder}/install.mjs`], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (/** @type {string} */ text) => (output += text));
    child.on('close', (code) =>
      done(
        code === 0 ? undefined : (output.trim().split('\n').at(-1) ?? `its install.mjs ended with ${code}`),
      ),
    );
  });
}

/**
 * The events of the test runner for all files. A client is tried as soon as it is installed, while others are
 * being installed. A required client that is missing is a failure. A suite that several clients share is
 * reported as the file that runs it.
 */
async function* events() {
  const merged = new PassThrough({ objectMode: true });
  /** @type {{ name: string, file: string }[]} */
  const installed = [];
  let allInstalled = false;
  let wake = Promise.withResolvers();
  const notify = () => {
    wake.resolve(undefined);
    wake = Promise.withResolvers();
  };
  const installs = inParallel(INSTALLS_AT_ONCE, clients, async (client) => {
    const reason = await install(client);
    if (reason === undefined)
      installed.push(
        ...client.files.filter(canRun).map((file) => ({ name: client.name, file: resolve(file) })),
      );
    else {
      missing.set(client.name, reason);
      if (isRequired(client.name)) merged.write(notInstalled(client.name, reason));
    }
    notify();
  }).finally(() => {
    allInstalled = true;
    notify();
  });
  const workers = Array.from({ length: FILES_AT_ONCE }, async () => {
    for (;;) {
      const next = installed.shift();
      if (next !== undefined) await tryFile(next, merged);
      else if (allInstalled) return;
      else await wake.promise;
    }
  });
  const ended = Promise.all([installs, ...workers]).finally(() => merged.end());
  yield* merged;
  await ended;
}

/** @param {{ name: string, file: string }} one @param {PassThrough} merged */
async function tryFile({ name, file }, merged) {
  for await (const { type, data } of /** @type {AsyncIterable<{ type: string, data: any }>} */ (
    run({ files: [file], timeout: FILE_LIMIT_MS, execArgv: MARKED })
  )) {
    count(name, type, data);
    merged.write({ type, data: { ...data, file } });
  }
}

/** @param {string} name */
function isRequired(name) {
  const required = (process.env['BERTH_REQUIRE_CLIENTS'] ?? '').split(' ').filter((word) => word !== '');
  return required.some((word) => (word.endsWith('/') ? name.startsWith(word) : name === word));
}

/** @param {string} name @param {string} reason */
function notInstalled(name, reason) {
  return {
    type: 'test:fail',
    data: {
      name: 'is installed',
      nesting: 0,
      file: resolve('clients', name, 'install.mjs'),
      details: { type: 'test', duration_ms: 0, error: new Error(reason) },
    },
  };
}

/**
 * @param {string} name
 * @param {string} type
 * @param {any} data
 */
function count(name, type, data) {
  const suite = data.details?.type === 'suite';
  if (
    (type !== 'test:pass' && type !== 'test:fail') ||
    data.skip !== undefined ||
    (suite && (type === 'test:pass' || data.details.error?.failureType === 'subtestsFailed'))
  )
    return;
  const one = counts.get(name);
  if (one !== undefined) one[type === 'test:pass' ? 'passed' : 'failed'] += 1;
}

/**
 * @template T
 * @param {number} atOnce
 * @param {T[]} list
 * @param {(one: T) => Promise<void>} work
 */
async function inParallel(atOnce, list, work) {
  const waiting = [...list];
  const lane = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}
