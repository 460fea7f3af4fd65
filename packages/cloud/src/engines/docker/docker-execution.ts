import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type Docker from 'dockerode';
import { ruleError } from '../../support/errors.ts';
import { signalOf } from '../exit-code.ts';
import type { Execution, ExecutionOptions, TerminalSize } from '../instance.ts';
import { EXECUTION_MARKER, isMarked, signalMarked } from '../marked-processes.ts';
import { isNotFound, daemonStatus } from './docker.errors.ts';
import { FrameParser } from './stream-frames.ts';

/** A command is looked at again after these times, the last one over and over: the daemon tells of no change by itself. */
const POLL_DELAYS_MS = [1, 2, 5, 10, 20, 50, 100, 250];
/** So often, until it is taken for begun: about a second. */
const MAX_START_POLLS = 10;
/** As shells have it: it could not be run, or was not there. */
const NOT_RUN_EXIT_CODES = [126, 127];
const KILLED_EXIT_CODE = 137;

/** A command beside what a container runs. */
export async function startExecution(
  container: Docker.Container,
  argv: readonly string[],
  { tty, env = {} }: ExecutionOptions,
): Promise<Execution> {
  if (argv.length === 0) throw ruleError('there is no command to run');
  // By this the command and what it started are found when they are to be signalled, for which the daemon has no call.
  const marker = randomUUID();
  const variables = { ...(tty !== undefined && { TERM: 'xterm-256color' }), ...env };
  const exec = await container.exec({
    Cmd: [...argv],
    Env: [
      ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      `${EXECUTION_MARKER}=${marker}`,
    ],
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: tty !== undefined,
  });
  const connection: Duplex = await exec.start({ hijack: true, stdin: true, Tty: tty !== undefined });
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const delivered = pipeOutput(connection, tty !== undefined, stdout, stderr);
  const state = await waitUntilStarted(exec);
  if (state.exitCode !== null && NOT_RUN_EXIT_CODES.includes(state.exitCode) && state.pid === 0)
    throw ruleError(
      `the command ${JSON.stringify(argv[0])} could not be run in the container: ${(await readAll(stdout)).trim()}`,
    );
  const resize = async (size: TerminalSize): Promise<void> => {
    if (tty === undefined) return;
    try {
      await exec.resize({ w: size.columns, h: size.rows });
    } catch (error) {
      // One that has ended has no size: the daemon says no. When it says nothing, that is a failure.
      if (daemonStatus(error) === undefined) throw error;
    }
  };
  if (tty !== undefined) await resize(tty);
  const exited = delivered.then(async () => {
    const exitCode = await exitCodeOf(exec);
    return { exitCode, signal: signalOf(exitCode) };
  });
  // Not everybody asks how it ended.
  exited.catch(() => undefined);
  return {
    stdin: connection,
    stdout,
    stderr,
    exited,
    resize,
    kill: (signal = 'SIGTERM') => {
      // Where the daemon is on this machine, nothing in the image is needed for it.
      if (isMarked(state.pid, EXECUTION_MARKER, marker) && signalMarked(EXECUTION_MARKER, marker, signal))
        return;
      kill(container, marker, signal).catch(() => connection.destroy());
    },
  };
}

/** Brings what comes to the two outputs, no faster than it is taken there. Resolves when all is there. */
async function pipeOutput(
  connection: Duplex,
  terminal: boolean,
  stdout: PassThrough,
  stderr: PassThrough,
): Promise<void> {
  const frames = new FrameParser();
  // Whoever writes to a command that has ended is told by its exit.
  connection.on('error', () => connection.destroy());
  connection.on('data', (chunk: Buffer) => {
    const parts = terminal ? [{ stream: 'stdout' as const, payload: chunk }] : frames.push(chunk);
    for (const { stream, payload } of parts) {
      const output = stream === 'stdout' ? stdout : stderr;
      if (output.write(payload) || connection.isPaused()) continue;
      connection.pause();
      output.once('drain', () => connection.resume());
    }
  });
  try {
    await finished(connection, { writable: false });
  } catch {
    // The daemon or the container went away: what the exit code says counts.
  }
  connection.destroy();
  stdout.end();
  stderr.end();
}

/** The daemon calls it running before it has a process; whether there can be one is seen then. */
async function waitUntilStarted(exec: Docker.Exec): Promise<{ exitCode: number | null; pid: number }> {
  for (let look = 0; ; look += 1) {
    const { Running: running, ExitCode: exitCode, Pid: pid } = await exec.inspect();
    if (pid > 0 || (!running && exitCode !== null) || look === MAX_START_POLLS)
      return { exitCode: running ? null : exitCode, pid };
    await waitBeforePoll(look);
  }
}

async function exitCodeOf(exec: Docker.Exec): Promise<number> {
  for (let look = 0; ; look += 1) {
    try {
      const { Running: running, ExitCode: exitCode } = await exec.inspect();
      if (!running) return exitCode ?? KILLED_EXIT_CODE;
    } catch (error) {
      // It went with its container.
      if (isNotFound(error)) return KILLED_EXIT_CODE;
      throw error;
    }
    await waitBeforePoll(look);
  }
}

async function waitBeforePoll(look: number): Promise<void> {
  await pause(POLL_DELAYS_MS[Math.min(look, POLL_DELAYS_MS.length - 1)]);
}

async function kill(container: Docker.Container, marker: string, signal: NodeJS.Signals): Promise<void> {
  const find = `for p in /proc/[0-9]*; do grep -qs ${EXECUTION_MARKER}=${marker} $p/environ && kill -s ${signal.slice('SIG'.length)} \${p#/proc/}; done; true`;
  const exec = await container.exec({ Cmd: ['sh', '-c', find] });
  // An answer that nobody reads keeps its connection.
  (await exec.start({ Detach: true })).resume();
}

async function readAll(stream: PassThrough): Promise<string> {
  return Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>)).toString();
}
