import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { killInstances } from '../../packages/testing/src/test-database.ts';
import { Stopwatch } from './stopwatch.ts';

/** Someone with a clone of the repository, at a terminal. */
export interface Persona {
  folder: string;
  url: string;
  /** What they have in their shell. */
  env: Record<string, string>;
  watch: Stopwatch;
  /** Starts the server as `npm start` does; it ends with the test. */
  startServer(flags?: string, env?: Record<string, string>): Promise<string>;
}

/** What `npm run test:clients` installs, where it has. */
const CLIENTS = ['runpod-sdk', 'openai'];

export async function createPersona(t: TestContext, scheme = 'http'): Promise<Persona> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-persona-'));
  for (const name of ['examples', 'packages']) symlinkSync(resolve(name), join(folder, name));
  mkdirSync(join(folder, 'node_modules'));
  for (const modules of ['node_modules', ...CLIENTS.map((name) => `clients/.installed/${name}/node_modules`)])
    for (const name of existsSync(modules) ? readdirSync(modules) : [])
      if (!existsSync(join(folder, 'node_modules', name)))
        symlinkSync(resolve(modules, name), join(folder, 'node_modules', name));
  const port = await freePort();
  const url = `${scheme}://localhost:${port}`;
  const watch = new Stopwatch(t);
  t.after(() => {
    killInstances(join(folder, '.berth'));
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });
  const env = { PATH: `${resolve('node_modules/.bin')}:${process.env['PATH']}` };
  return {
    folder,
    url,
    env,
    watch,
    startServer: async (flags = '', extra = {}) => {
      const { stdout } = await watch.start(`berth up --port ${port} ${flags}`, /^berth is up at /m, {
        cwd: folder,
        env: { ...env, BERTH_DOCKER: 'off', ...extra },
      });
      return stdout;
    },
  };
}
