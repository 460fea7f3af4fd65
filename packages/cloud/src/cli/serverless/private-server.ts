import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Environment } from '../../support/config/config-from-environment.ts';
import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';

const PROGRAM = fileURLToPath(new URL('../../../bin/berth.js', import.meta.url));

/** How long to wait for the server to stop; its data is temporary. */
const STOP_TIMEOUT_MS = 10_000;

export interface PrivateServer {
  client: ApiClient;
  /** Resolves with its last output when the server ended by itself. */
  ended: Promise<string>;
  /** Stops the server and deletes its data. */
  stop(): Promise<void>;
}

/** Starts a server with temporary data. The settings of other servers do not apply to it. */
export async function startPrivateServer(env: Environment, port: number): Promise<PrivateServer> {
  const data = await mkdtemp(join(tmpdir(), 'berth-dev-'));
  // In its own process group: Ctrl-C goes to this program, which stops the server after cleaning up.
  const child = spawn(process.execPath, [PROGRAM, 'up', '--port', String(port), '--data', data], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: {
      ...withoutBerthVariables(env),
      BERTH_LOG_LEVEL: 'warn',
      BERTH_RATE_LIMITS: 'off',
      ...(env['BERTH_GPUS'] && { BERTH_GPUS: env['BERTH_GPUS'] }),
    },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-4000)));
  const ended = once(child, 'exit').then(() => stderr.trim());
  const stop = async (): Promise<void> => {
    const cut = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(cut);
    await rm(data, { recursive: true, force: true });
  };
  try {
    await waitUntilUp(child, ended);
    return { client: await connect({ options: { data }, env: {} }), ended, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function withoutBerthVariables(env: Environment): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('BERTH_')));
}

async function waitUntilUp({ stdout }: ChildProcess, ended: Promise<string>): Promise<void> {
  let printed = '';
  let over: string | undefined;
  void ended.then((stderr) => (over = stderr));
  while (!/^berth is up at /m.test(printed)) {
    if (over !== undefined || stdout === null)
      throw new CliError(`a private Berth did not start: ${over ?? ''}`);
    await Promise.race([once(stdout, 'data').then(([bytes]) => (printed += String(bytes))), ended]);
  }
}
