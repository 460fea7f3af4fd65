// Runs the tests on the project's own Node. Words narrow the run to files whose path contains one of them.
//   --unit                     only the unit tier: no server, no database server, no Docker; SQLite alone
//   --long                     everything, with many more kills, crashes and races, and what takes minutes
//   --test-name-pattern=TEXT   only tests whose name matches
//   --test-concurrency=N       files at once
// Without --unit a PostgreSQL is started for the run, and the Docker suites run where a daemon answers or can
// be started, those of Kubernetes where its programs are.
import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { endLeftoverProcesses } from './leftover-processes.mjs';
import { longestFirst, TestDurations } from './test-durations.mjs';
import report from './test-reporter.mjs';

/** Files that need a Docker daemon. */
const WITH_DOCKER = /(?:-docker|docker-engine\.integration)\.test\.ts$/;
/** Files that need a Kubernetes cluster. */
const WITH_KUBERNETES = /(?:-kubernetes|kubernetes-[a-z-]+\.integration)\.test\.ts$/;
/** Files that build the web console where it is not built yet. */
const WITH_CONSOLE = /^tests\/(?:console\/|published-packages)/;
/** Files beside the code that need a database server, Docker or processes of their own. */
const INTEGRATION = /\.integration\.test\.ts$/;
/** Building the container image takes minutes, and so do many kills. */
const FILE_TIMEOUT_MS =
  process.env['BERTH_REQUIRE_IMAGE'] === '1' || process.argv.includes('--long') ? 1_500_000 : 600_000;
/** It keeps all processors busy for a minute or two, and takes five times as long beside other files. */
const ALONE = /simulation\/simulation\.test\.ts$/;

const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const unit = process.argv.includes('--unit');
const concurrency = Number(flag('test-concurrency') ?? availableParallelism() + 2);

let files = longestFirst(
  globSync(
    unit
      ? ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts']
      : ['tests/**/*.test.ts', 'packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts'],
  )
    .filter((file) => !unit || !INTEGRATION.test(file))
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word))),
);
if (files.length === 0) {
  process.stderr.write(`no test file matches ${words.join(' ')}\n`);
  process.exit(1);
}
// Compiled code is kept between the processes of a run, and between runs.
process.env['NODE_COMPILE_CACHE'] ??= resolve('node_modules/.cache/tests');

/** @type {(() => Promise<void>)[]} */
const cleanups = [];
/** Those that have not ended yet. @type {Set<string>} */
let kubernetesFiles = new Set();
/** @type {() => Promise<void>} */
let stopKubernetes = async () => undefined;
if (unit) process.env['BERTH_TEST_TIER'] = 'unit';
else await startServices();
if (process.argv.includes('--long')) process.env['BERTH_TEST_TIER'] = 'long';

endLeftoverProcesses((line) => process.stdout.write(line), { fileLimitMs: FILE_TIMEOUT_MS + 30_000 });
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => interrupted.abort());
const namePattern = flag('test-name-pattern');
const folder = mkdtempSync(join(tmpdir(), 'berth-test-run-'));
process.env['BERTH_TEST_USAGE'] = join(folder, 'usage');
const durations = new TestDurations(process.env['BERTH_TEST_USAGE']);
let failed = false;
for await (const text of report(events(), () => durations.end())) process.stdout.write(text);
for (const cleanup of cleanups) await cleanup();
rmSync(folder, { recursive: true });
process.exit(failed || interrupted.signal.aborted ? 1 : 0);

/** What the test runner reports of all files: of those that run alone, then of the others. */
async function* events() {
  const groups = [files.filter((file) => ALONE.test(file)), files.filter((file) => !ALONE.test(file))];
  for (const group of groups.filter(({ length }) => length > 0))
    for await (const event of run({
      files: group.map((file) => resolve(file)),
      concurrency,
      timeout: FILE_TIMEOUT_MS,
      execArgv: ['--import', resolve('scripts/mark-test-process.mjs')],
      signal: interrupted.signal,
      ...(namePattern !== undefined && { testNamePatterns: new RegExp(namePattern) }),
    })) {
      const { type, data } = /** @type {{ type: string, data: any }} */ (event);
      durations.observe({ type, data });
      await stopKubernetesAfter(type, data);
      if (type === 'test:fail' && data.todo === undefined && data.skip === undefined) failed = true;
      yield { type, data };
    }
}

/** PostgreSQL, and Docker and Kubernetes where a file needs them; without them those files do not run. */
async function startServices() {
  // Once, before several files do it at the same time. A file that needs the console says why it cannot be built.
  const consoleBuild = files.some((file) => WITH_CONSOLE.test(file))
    ? new Promise((done) => execFile(process.execPath, ['scripts/build-console.mjs'], done))
    : undefined;
  await Promise.all([startDocker(), startKubernetes(), startPostgres(), consoleBuild]);
  if (files.length === 0) process.exit(0);
}

async function startPostgres() {
  const { createTemplateDatabase, startTestPostgres } = await import(
    '../packages/testing/src/postgres-server.mjs'
  );
  const postgres = await startTestPostgres({ durable: false });
  const template = await createTemplateDatabase(postgres.url);
  process.env['BERTH_TEST_DATABASE_URL'] = postgres.url;
  process.env['BERTH_TEST_DATABASE_TEMPLATE'] = template.name;
  cleanups.push(async () => {
    // A signal that ends the run has stopped a server of its own already, with all its databases.
    await template.drop().catch(ignoreWhenInterrupted);
    await postgres.stop();
  });
}

async function startDocker() {
  if (!files.some((file) => WITH_DOCKER.test(file))) return;
  const { findOrStartDocker } = await import('../packages/testing/src/docker-daemon.mjs');
  const docker = await findOrStartDocker();
  if ('reason' in docker) {
    process.stdout.write(`the Docker suites did not run: ${docker.reason}\n`);
    files = files.filter((file) => !WITH_DOCKER.test(file));
    return;
  }
  process.env['BERTH_TEST_DOCKER_HOST'] = docker.host;
  cleanups.push(() => docker.stop());
}

/** One cluster for all files of a run. */
async function startKubernetes() {
  if (!files.some((file) => WITH_KUBERNETES.test(file))) return;
  const { startKubernetes: start } = await import('../packages/testing/src/kubernetes/kubernetes-cluster.ts');
  const cluster = await start();
  if ('reason' in cluster) {
    process.stdout.write(`the Kubernetes suites did not run: ${cluster.reason}\n`);
    files = files.filter((file) => !WITH_KUBERNETES.test(file));
    return;
  }
  process.env['BERTH_TEST_KUBECONFIG'] = cluster.kubeconfig;
  process.env['BERTH_TEST_KUBERNETES_HOST'] = cluster.host;
  kubernetesFiles = new Set(files.filter((file) => WITH_KUBERNETES.test(file)));
  stopKubernetes = cluster.stop;
  cleanups.push(() => stopKubernetes());
}

/** A cluster works also where nobody asks it to: it ends with the last file that needs it. @param {string} type @param {any} data */
async function stopKubernetesAfter(type, data) {
  if (type !== 'test:summary' || data.file === undefined) return;
  if (!kubernetesFiles.delete(relative(process.cwd(), data.file)) || kubernetesFiles.size > 0) return;
  const stop = stopKubernetes;
  stopKubernetes = async () => undefined;
  await stop();
}

/** @param {unknown} error */
function ignoreWhenInterrupted(error) {
  if (!interrupted.signal.aborted) throw error;
}

/** @param {string} name @returns {string | undefined} */
function flag(name) {
  return process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);
}
