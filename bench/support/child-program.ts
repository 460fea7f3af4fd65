import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const START_TIMEOUT_MS = 60_000;
const STOP_MS = 20_000;
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export interface Program {
  pid: number;
  /** What the groups of `ready` matched. */
  match: RegExpExecArray;
  stop(): Promise<void>;
}

export interface ProgramOptions {
  command: string;
  args: string[];
  env?: Record<string, string>;
  /** The line on standard output that says it is up. */
  ready: RegExp;
  timeoutMs?: number;
}

/** Starts a program and waits for the line that says it is up. */
export async function startProgram({
  command,
  args,
  env = {},
  ready,
  timeoutMs = START_TIMEOUT_MS,
}: ProgramOptions): Promise<Program> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  running.add(child);
  const exited = once(child, 'exit').then(() => void running.delete(child));
  const said: string[] = [];
  const match = await new Promise<RegExpExecArray>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${command} did not come up:\n${said.join('\n')}`)),
      timeoutMs,
    );
    child.on('error', reject);
    void exited.then(() => reject(new Error(`${command} ${args.join(' ')} ended:\n${said.join('\n')}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      said.push(line);
      const found = ready.exec(line);
      if (found === null) return;
      clearTimeout(timer);
      resolve(found);
    });
  });
  return { pid: child.pid ?? 0, match, stop: () => stopChild(child, exited) };
}

/** A program that ends by itself; its output. */
export async function runProgram(
  command: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  running.add(child);
  let output = '';
  child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (output += bytes.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  running.delete(child);
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${output}`);
  return output;
}

export async function stopChild(child: ChildProcess, exited: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await exited;
  clearTimeout(timer);
}

export function killOnExit(child: ChildProcess): Promise<void> {
  running.add(child);
  return once(child, 'exit').then(() => void running.delete(child));
}
