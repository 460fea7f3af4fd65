import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline';
import type { TestDatabase } from './databases.ts';

const BERTH = fileURLToPath(new URL('../../packages/cloud/bin/berth', import.meta.url));
export const ROOT_KEY = 'rpa_TESTROOTKEYTESTROOTKEYTESTROOTKEY';

/** The real program, started as a person starts it. */
export interface TestServer {
  url: string;
  key: string;
  process: ChildProcess;
  /** All that it has written to its log. */
  log(): string;
  /** Ends it as an operator would; resolves with its exit code. */
  stop(): Promise<number | null>;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
}

export async function startServer(database: Pick<TestDatabase, 'data' | 'url'>, env: Record<string, string> = {}): Promise<TestServer> {
  const child = spawn(BERTH, ['up', '--port', '0', '--data', database.data], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], BERTH_ROOT_KEY: ROOT_KEY, BERTH_DATABASE_URL: database.url, BERTH_LOG_FORMAT: 'json', ...env },
  });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const url = await upLine(child, () => log);
  return {
    url,
    key: env['BERTH_ROOT_KEY'] ?? ROOT_KEY,
    process: child,
    log: () => log,
    stop: async () => {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function upLine(child: ChildProcess, log: () => string): Promise<string> {
  if (child.stdout === null) throw new Error('no standard output');
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) {
    const url = /^berth is up at (\S+)$/.exec(line)?.[1];
    if (url !== undefined) {
      child.stdout.resume();
      return url;
    }
  }
  throw new Error(`berth did not start:\n${log()}`);
}
