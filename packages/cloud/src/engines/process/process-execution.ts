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
  /** The program that provides the terminal; found in PATH by default. */
  ptyProgram?: PtyProgram;
}

/** Starts a command for an instance, in its own session. */
export async function startExecution(
  options: ProcessExecutionOptions,
): Promise<{ pid: number; execution: Execution }> {
  const { argv, cwd, env, tty, ptyProgram = findPtyProgram() } = options;
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
  const spawnOptions = {
    cwd,
    env: {
      ...(tty === undefined ? env : { TERM: 'xterm-256color', ...env, SHELL: '/bin/sh' }),
      [EXECUTION_MARKER]: marker,
    },
    detached: true,
  };
  const child = spawn(program, args, {
    ...spawnOptions,
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
  // A write error needs no report: the exit tells that the command has ended.
  stdin.on('error', () => stdin.destroy());
  return {
    stdin,
    // When the process ends, Node discards output that has not been read yet.
    stdout: (child.stdout as Readable).pipe(new PassThrough()),
    stderr: (child.stderr as Readable).pipe(new PassThrough()),
    exited: once(child, 'close').then(([code, signal]) => {
      const exitCode = exitCodeOf(code as number | null, signal as NodeJS.Signals | null);
      return { exitCode, signal: signalOf(exitCode) };
    }),
    resize: async (size) => {
      const name = await terminal;
      // Empty if the command ended before it had a terminal.
      if (name) await run('stty', ['-F', name, ...sttySizeArguments(size)]);
    },
    kill: (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null) kill(child.pid as number, marker, signal);
    },
  };
}

/**
 * Signals the command's process group. With a terminal, that group belongs to the terminal program, and the
 * command gets a hangup with it. SIGKILL also reaches every process that the command started.
 */
function kill(pid: number, marker: string, signal: NodeJS.Signals): void {
  if (signal === 'SIGKILL') signalMarked(EXECUTION_MARKER, marker, signal);
  sendSignal(-pid, signal);
}

async function readTerminalName(child: ChildProcess): Promise<string> {
  for await (const line of createInterface(child.stdio[3] as Readable)) return line;
  return '';
}
