import { randomUUID } from 'node:crypto';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
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
import {
  ENVIRONMENT_FD,
  environmentScript,
  TRUSTED_ENVIRONMENT,
  withUnusualVariables,
} from './isolation/account-command.ts';
import { allProcesses } from './process-table.ts';
import { writeEnvironment } from './isolation/write-environment.ts';
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
  /** The command as it is run for an account: by its user, in the instance's namespaces. */
  asTenant?: (argv: readonly string[]) => readonly string[];
}

/** Starts a command for an instance, in its own session. */
export async function startExecution(
  options: ProcessExecutionOptions,
): Promise<{ pid: number; execution: Execution }> {
  const { argv, cwd, env, tty, ptyProgram = findPtyProgram(), asTenant } = options;
  const [wanted] = argv;
  if (wanted === undefined || wanted === '') throw ruleError('there is no command to run');
  if (tty !== undefined && ptyProgram === undefined)
    throw new BerthError(
      'unavailable',
      'this machine has no program that makes terminals (script of util-linux, or python3)',
    );
  // What a path leads to in the account's view is not known here.
  if (asTenant === undefined || !wanted.includes('/')) await findProgram(wanted, cwd, env['PATH'] ?? '');
  const command = tty === undefined || ptyProgram === undefined ? argv : ptyCommand(argv, tty, ptyProgram);
  const marker = randomUUID();
  const commandEnv = {
    ...(tty === undefined ? env : { TERM: 'xterm-256color', ...env, SHELL: '/bin/sh' }),
    [EXECUTION_MARKER]: marker,
  };
  const [program = '', ...args] =
    asTenant === undefined ? command : asTenant(withUnusualVariables(commandEnv, command));
  const terminalPipe = tty === undefined ? 'ignore' : 'pipe';
  const child = spawn(program, args, {
    detached: true,
    ...(asTenant === undefined
      ? { cwd, env: commandEnv, stdio: ['pipe', 'pipe', 'pipe', ...(tty === undefined ? [] : ['pipe'])] }
      : { cwd: '/', env: TRUSTED_ENVIRONMENT, stdio: ['pipe', 'pipe', 'pipe', terminalPipe, 'pipe'] }),
  } as SpawnOptions);
  try {
    await once(child, 'spawn');
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? ruleError(`the command ${JSON.stringify(program)} was not found on this machine`)
      : new BerthError('unavailable', `the command could not be started: ${(error as Error).message}`, {
          cause: error,
        });
  }
  if (asTenant !== undefined) writeEnvironment(child, environmentScript(commandEnv));
  return {
    pid: child.pid as number,
    execution: executionOf(child, marker, tty === undefined ? undefined : readTerminalName(child), asTenant),
  };
}

function executionOf(
  child: ChildProcess,
  marker: string,
  terminal: Promise<string> | undefined,
  asTenant: ProcessExecutionOptions['asTenant'],
): Execution {
  const stdin = child.stdin as Writable;
  // A write error needs no report: the exit shows that the command has ended.
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
      if (!name) return;
      const stty = ['stty', '-F', name, ...sttySizeArguments(size)];
      const [program = '', ...args] =
        asTenant === undefined
          ? stty
          : ['/bin/sh', '-c', `exec "$@" ${ENVIRONMENT_FD}</dev/null`, 'sh', ...asTenant(stty)];
      await run(program, args);
    },
    kill: (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null)
        kill(child.pid as number, marker, signal, asTenant !== undefined);
    },
  };
}

/**
 * Signals the command's process group. With a terminal, that group belongs to the terminal program, and the
 * command gets a hangup with it. SIGKILL also reaches every process that the command started.
 */
function kill(pid: number, marker: string, signal: NodeJS.Signals, isTenant: boolean): void {
  if (signal === 'SIGKILL') signalMarked(EXECUTION_MARKER, marker, signal);
  if (!isTenant || signal === 'SIGKILL') sendSignal(-pid, signal);
  // The program that entered the namespaces waits for the command and is not meant.
  else
    for (const member of allProcesses())
      if (member.group === pid && member.pid !== pid) sendSignal(member.pid, signal);
}

async function readTerminalName(child: ChildProcess): Promise<string> {
  for await (const line of createInterface(child.stdio[3] as Readable)) return line;
  return '';
}
