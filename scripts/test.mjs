// Runs every test file on the project's own Node, with a PostgreSQL beside it, and a Docker daemon where one is there or can be started.
// Words narrow the run to files whose path contains one of them; --flags go to the runner.
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { findOrStartDocker } from '../packages/testing/src/docker-daemon.mjs';
import { startTestPostgres } from '../packages/testing/src/postgres-server.mjs';

/** Files that need a daemon. */
const WITH_DOCKER = /(?:-docker|engines\/docker\/docker-engine)\.test\.ts$/;

const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const flags = process.argv.slice(2).filter((word) => word.startsWith('--'));
let files = globSync(['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts', 'scripts/**/*.test.ts'])
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort();
if (files.length === 0) {
  process.stderr.write(`no test file matches ${words.join(' ')}\n`);
  process.exit(1);
}
const docker = files.some((file) => WITH_DOCKER.test(file)) ? await findOrStartDocker() : undefined;
if (docker !== undefined && 'reason' in docker) {
  process.stdout.write(`the Docker suites did not run: ${docker.reason}\n`);
  files = files.filter((file) => !WITH_DOCKER.test(file));
  if (files.length === 0) process.exit(0);
}
const postgres = await startTestPostgres();
const runner = spawn(
  process.execPath,
  [
    '--test',
    '--test-concurrency=2',
    '--test-timeout=240000',
    '--test-reporter=./scripts/test-reporter.mjs',
    '--test-reporter-destination=stdout',
    ...flags,
    ...files,
  ],
  {
    stdio: 'inherit',
    env: {
      ...process.env,
      BERTH_TEST_DATABASE_URL: postgres.url,
      ...(docker !== undefined && 'host' in docker && { BERTH_TEST_DOCKER_HOST: docker.host }),
    },
  },
);
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM']))
  process.on(signal, () => runner.kill(signal));
runner.on('exit', async (code) => {
  await postgres.stop();
  if (docker !== undefined && 'host' in docker) await docker.stop();
  process.exit(code ?? 1);
});
