import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiClient } from './api-client.ts';
import type { ApiClient } from './api-client.ts';
import type { TestDatabase } from './test-database.ts';
import { BERTH_COMMAND } from './berth-command.ts';

export const ROOT_KEY = 'rpa_TESTROOTKEYTESTROOTKEYTESTROOTKEY';

/** The real program, started as a person starts it. */
export interface ServerProcess {
  url: string;
  key: string;
  process: ChildProcess;
  /** A client with this key, or with the root key. */
  client(key?: string): ApiClient;
  /** All that it has printed. */
  output(): string;
  /** All that it has written to its log. */
  log(): string;
  /** Resolves with its exit code once it has ended; null where a signal ended it. */
  ended: Promise<number | null>;
  /** Ends it as an operator would; resolves with its exit code. */
  stop(): Promise<number | null>;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
}

/** As the user who runs the tests, unless another one is named; of this version, unless another one is. */
export async function startServerProcess(
  database: Pick<TestDatabase, 'data' | 'url'>,
  env: Record<string, string> = {},
  flags: string[] = ['--port', '0'],
  user?: number,
  program = BERTH_COMMAND,
): Promise<ServerProcess> {
  const child = spawn(program, ['up', ...flags, '--data', database.data], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(user !== undefined && { uid: user, gid: user }),
    // A daemon that happens to run on this machine takes no part unless a test says so.
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      // The marks by which a server that a test leaves behind is found.
      BERTH_TEST_PROCESS: process.env['BERTH_TEST_PROCESS'],
      BERTH_CI_RUN: process.env['BERTH_CI_RUN'],
      BERTH_DOCKER: 'off',
      // Most definitions ask for a GPU.
      BERTH_GPUS: 'virtual',
      BERTH_ROOT_KEY: ROOT_KEY,
      BERTH_DATABASE_URL: database.url,
      BERTH_LOG_FORMAT: 'json',
      ...(user !== undefined && { NODE_COMPILE_CACHE: compileCacheOf(user) }),
      ...env,
    },
  });
  let output = '';
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log += chunk));
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const key = env['BERTH_ROOT_KEY'] ?? ROOT_KEY;
  const url = await readServerUrl(
    child,
    ended,
    () => output,
    () => log,
  );
  return {
    url,
    key,
    process: child,
    client: (other = key) => createApiClient(url, other),
    output: () => output,
    log: () => log,
    ended,
    stop: async () => {
      child.kill('SIGTERM');
      return ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Another user cannot write to that of the tests, and would compile all sources at each start. */
function compileCacheOf(user: number): string {
  const folder = join(tmpdir(), `berth-test-compile-cache-${user}`);
  mkdirSync(folder, { recursive: true });
  if (process.getuid?.() === 0) chownSync(folder, user, user);
  return folder;
}

/** The address in the line that the program prints when it serves. */
async function readServerUrl(
  child: ChildProcess,
  ended: Promise<unknown>,
  output: () => string,
  log: () => string,
): Promise<string> {
  let over = false;
  void ended.then(() => (over = true));
  for (;;) {
    const url = /^berth is up at (\S+)\n/m.exec(output())?.[1];
    if (url !== undefined) return url;
    if (over || child.stdout === null) throw new Error(`berth did not start:\n${log()}`);
    await Promise.race([once(child.stdout, 'data'), ended]);
  }
}
