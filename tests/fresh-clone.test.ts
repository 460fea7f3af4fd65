import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { skipUnlessLong } from '../packages/testing/src/test-tier.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Everything is downloaded, and the console is built. */
const STEP_TIMEOUT_MS = 600_000;
/** What npm tells the programs that it runs: the clone has an npm of its own. */
const OF_THIS_RUN =
  /^(?:npm_(?:lifecycle|package|command|execpath|node)|INIT_CWD$|NODE$|NODE_(?:TEST|COMPILE|OPTIONS)|BERTH_TEST_(?!PROCESS))/;
/** A thousand take a minute, on whatever Node: they run on that of the project. */
const FEW_SEEDS = { BERTH_SIMULATION_SEEDS: '20' };

const execute = promisify(execFile);

/** The last commit is what is tried, as with any clone. */
describe('a fresh clone installs, starts, runs a job and passes its unit tests', {
  skip: skipUnlessLong,
}, () => {
  for (const version of ['20', '22', '24'])
    test(`on Node ${version}`, async (context) => {
      const folder = createTemporaryFolder('fresh', { 'node/package.json': '{"private":true}' });
      context.after(() => folder.remove());
      const [clone, installed] = [join(folder.path, 'berth'), join(folder.path, 'node')];
      const inherited = (process.env['PATH'] ?? '').split(delimiter);
      const env = {
        ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THIS_RUN.test(name))),
        PATH: [
          join(installed, 'node_modules/node/bin'),
          // Not the programs of this clone; its Node only to install the other one, where there is none.
          ...inherited.filter((place) => !place.includes('node_modules')),
          dirname(process.execPath),
        ].join(delimiter),
        BERTH_DOCKER: 'off',
        ...FEW_SEEDS,
      };
      const run = (cwd: string, command: string, ...args: string[]): Promise<{ stdout: string }> =>
        execute(command, args, { cwd, env, timeout: STEP_TIMEOUT_MS, maxBuffer: 1e8 }).catch(
          ({ stdout, stderr }: { stdout: string; stderr: string }) =>
            assert.fail(`${command} ${args.join(' ')} failed: ${(stdout + stderr).slice(-4_000)}`),
        );

      await run(ROOT, 'git', 'clone', '--quiet', '--local', ROOT, clone);
      await run(
        ROOT,
        'npm',
        'install',
        '--no-save',
        '--prefer-offline',
        '--prefix',
        installed,
        `node@${version}`,
      );
      assert.match((await run(clone, 'node', '--version')).stdout, new RegExp(`^v${version}\\.`));
      await run(clone, 'npm', 'ci', '--prefer-offline', '--no-audit', '--no-fund');
      const { stdout } = await run(clone, 'node', 'scripts/try-start.mjs');
      assert.match(stdout, new RegExp(`^v${version}\\..*: a job on a fresh start answered`, 'm'));
      const tests = await run(clone, 'npm', 'run', 'test:unit');
      assert.match(tests.stdout, /^\d+ passed, 0 failed/m);
    });
});
