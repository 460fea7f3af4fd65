import { randomUUID } from 'node:crypto';
import type { ChildProcess } from 'node:child_process';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { promisify } from 'node:util';
import { BerthError, ruleError } from '../../support/errors.ts';
import { exitCodeOf, signalOf } from '../exit-code.ts';
import type { Execution, TerminalSize } from '../instance.ts';
import { EXECUTION_MARKER, signalMarked } from '../marked-processes.ts';
import { findProgram } from './local-images.ts';
import { sendSignal } from './instance-processes.ts';
import { findPtyProgram, ptyCommand, sttySizeArguments } from './pty.ts';
import type { PtyProgram } from './pty.ts';

const run = promisify(execFile);

export interface ProcessExecutionOptions {
  argv: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  tty?: TerminalSize;
  /** What makes the terminal; looked for where it is not said. */
  ptyProgram?: PtyProgram;
}

/** A command beside an instance, in a session of its own. */
export async function startExecution(
  parts: ProcessExecutionOptions,
): Promise<{ pid: number; execution: Execution }> {
  const { argv, cwd, env, tty, ptyProgram = findPtyProgram() } = parts;
  const [wanted] = argv;
  if (wanted === undefined || wanted === '') throw ruleError('there is no command to run');
  if (tty !== undefined && ptyProgram === undefined)
    throw new BerthError(
      'unavailable',
      'this machine has no program that makes terminals (script of util-linux, or python3)',
    );
  await findProgram(wanted, cwd, env['PATH'] ?? '');
  const [program = '', ...args] =
    tty === undefined || ptyProgram === undefined ? argv : ptyCommand(argv, tty, ptyProgram);
  const marker = randomUUID();
  const options = {
    cwd,
    env: {
      ...(tty === undefined ? env : { TERM: 'xterm-256color', ...env, SHELL: '/bin/sh' }),
      [EXECUTION_MARKER]: marker,
    },
    detached: true,
  };
  const child = spawn(program, args, {
    ...options,
    stdio: ['pipe', 'pipe', 'pipe', ...(tty === undefined ? [] : ['pipe' as const])],
  });
  try {
    await once(child, 'spawn');
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? ruleError(`the command ${JSON.stringify(program)} was not found on this machine`)
      : new BerthError('unavailable', `the command could not be started: ${(error as Error).message}`, {
          cause: error,
        });
  }
  return {
    pid: child.pid as number,
    execution: executionOf(child, marker, tty === undefined ? undefined : readTerminalName(child)),
  };
}

function executionOf(child: ChildProcess, marker: string, terminal: Promise<string> | undefined): Execution {
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
      if (name) await run('stty', ['-F', name, ...sttySizeArguments(size)]);
    },
    kill: (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null) kill(child.pid as number, marker, signal);
    },
  };
}

/** It has a group of its own; in a terminal that is of those who make the terminal, and the command hangs up with them. What is ended for good is ended with all that it started. */
function kill(pid: number, marker: string, signal: NodeJS.Signals): void {
  if (signal === 'SIGKILL') signalMarked(EXECUTION_MARKER, marker, signal);
  sendSignal(-pid, signal);
}

async function readTerminalName(child: ChildProcess): Promise<string> {
  for await (const line of createInterface(child.stdio[3] as Readable)) return line;
  return '';
}
