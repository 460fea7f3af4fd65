import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { killInstances } from '../../packages/testing/src/test-database.ts';
import { skipUnlessLong } from '../../packages/testing/src/test-tier.ts';
import { Stopwatch } from './stopwatch.ts';

/** Someone with a clone of the repository, at a terminal. */
export interface Persona {
  folder: string;
  /** In the long tier they begin with nothing but the clone, and install what they use. */
  isClone: boolean;
  url: string;
  /** What they have in their shell. */
  env: Record<string, string>;
  watch: Stopwatch;
  /**
   * Starts the server with `npm start`, in a fresh clone in the long tier and else as after the first start; it
   * ends with the test.
   */
  startServer(flags?: string, env?: Record<string, string>): Promise<string>;
}

/** What `npm run test:clients` installs, where it has. */
const CLIENTS = ['runpod-sdk', 'openai'];

export async function createPersona(t: TestContext, scheme = 'http'): Promise<Persona> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-persona-'));
  const isClone = skipUnlessLong === undefined;
  // The folder is there already, and empty.
  if (isClone) execFileSync('git', ['clone', '--quiet', '--local', resolve('.'), folder]);
  else makeInstalled(folder);
  const port = await freePort();
  const url = `${scheme}://localhost:${port}`;
  const watch = new Stopwatch(t);
  t.after(() => {
    killInstances(join(folder, '.berth'));
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });
  const programs = isClone ? join(folder, 'node_modules/.bin') : resolve('node_modules/.bin');
  const env = { PATH: `${programs}:${process.env['PATH']}` };
  return {
    folder,
    isClone,
    url,
    env,
    watch,
    startServer: async (flags = '', extra = {}) => {
      const { stdout } = await watch.start(`npm start -- --port ${port} ${flags}`, /^berth is up at /m, {
        cwd: folder,
        // The packages of a clone come from the cache where they can.
        env: { ...env, BERTH_DOCKER: 'off', npm_config_prefer_offline: 'true', ...extra },
      });
      return stdout;
    },
  };
}

/** A folder like a clone after its first start. */
function makeInstalled(folder: string): void {
  for (const name of ['examples', 'packages', 'scripts', 'package.json'])
    symlinkSync(resolve(name), join(folder, name));
  mkdirSync(join(folder, 'node_modules'));
  for (const modules of ['node_modules', ...CLIENTS.map((name) => `clients/.installed/${name}/node_modules`)])
    for (const name of existsSync(modules) ? readdirSync(modules) : [])
      if (!existsSync(join(folder, 'node_modules', name)))
        symlinkSync(resolve(modules, name), join(folder, 'node_modules', name));
}
