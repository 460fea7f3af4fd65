import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The program itself, as it is installed. */
export const BERTH_COMMAND = fileURLToPath(new URL('../../cloud/bin/berth', import.meta.url));

export interface CommandResult<T = Record<string, unknown>> {
  code: number | null;
  stdout: string;
  stderr: string;
  /** Its output as JSON, where it is. */
  json: T;
}

/** Runs a command of the program to its end, in an environment of its own. */
export async function runBerth<T = Record<string, unknown>>(
  args: string[],
  env: Record<string, string> = {},
  program = BERTH_COMMAND,
): Promise<CommandResult<T>> {
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Tests read results as JSON.
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], BERTH_OUTPUT: 'json', ...env },
  });
  const ran: CommandResult<T> = { code: null, stdout: '', stderr: '', json: undefined as T };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (ran.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (ran.stderr += chunk));
  [ran.code] = (await once(child, 'close')) as [number | null];
  try {
    ran.json = JSON.parse(ran.stdout) as T;
  } catch {
    // Not every command answers in JSON.
  }
  return ran;
}
