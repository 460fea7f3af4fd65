import type { ChildProcess } from 'node:child_process';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { promisify } from 'node:util';
import { BerthError, rule } from '../../support/errors.ts';
import { exitCodeOf, signalOf } from '../exit-code.ts';
import type { Execution, TerminalSize } from '../instance.ts';

const run = promisify(execFile);

export interface ExecutionParts {
  argv: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  tty?: TerminalSize;
}

/** A command beside an instance, in a session of its own. */
export async function startExecution(parts: ExecutionParts): Promise<{ pid: number; execution: Execution }> {
  const { cwd, env, tty } = parts;
  const [program, ...args] = tty === undefined ? parts.argv : inTerminal(parts.argv, tty);
  if (program === undefined) throw rule('there is no command to run');
  const options = { cwd, env: tty === undefined ? env : { TERM: 'xterm-256color', ...env, SHELL: '/bin/sh' }, detached: true };
  // In a terminal the first line on descriptor 3 is the terminal's name, by which it is resized.
  const child = spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'pipe', ...(tty === undefined ? [] : ['pipe' as const])] });
  try {
    await once(child, 'spawn');
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? rule(`the command ${JSON.stringify(program)} was not found on this machine`) : new BerthError('unavailable', `the command could not be started: ${(error as Error).message}`, { cause: error });
  }
  return { pid: child.pid as number, execution: executionOf(child, tty === undefined ? undefined : nameOfTerminal(child)) };
}

function executionOf(child: ChildProcess, terminal: Promise<string> | undefined): Execution {
  const stdin = child.stdin as Writable;
  // Whoever writes to a command that has ended is told by its exit.
  stdin.on('error', () => stdin.destroy());
  return {
    stdin,
    // Node throws away what nobody has begun to read when the process ends.
    stdout: (child.stdout as Readable).pipe(new PassThrough()),
    stderr: (child.stderr as Readable).pipe(new PassThrough()),
    exited: once(child, 'close').then(([code, signal]) => {
      const exitCode = exitCodeOf(code as number | null, signal as NodeJS.Signals | null);
      return { exitCode, signal: signalOf(exitCode) };
    }),
    resize: async (size) => {
      const name = await terminal;
      // An empty name: it ended before it had a terminal.
      if (name) await run('stty', ['-F', name, ...sizeOf(size)]);
    },
    kill: (signal = 'SIGTERM') => void child.kill(signal),
  };
}

/** Node has no terminals of its own, `script` has: it runs the command in one and passes everything on. */
function inTerminal(argv: readonly string[], size: TerminalSize): string[] {
  const command = `stty ${sizeOf(size).join(' ')}; tty >&3; exec 3>&-; exec ${argv.map(quote).join(' ')}`;
  return ['script', '--quiet', '--return', '--flush', '--command', command, '/dev/null'];
}

function sizeOf({ columns, rows }: TerminalSize): string[] {
  return ['cols', String(columns), 'rows', String(rows)];
}

async function nameOfTerminal(child: ChildProcess): Promise<string> {
  for await (const line of createInterface(child.stdio[3] as Readable)) return line;
  return '';
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
