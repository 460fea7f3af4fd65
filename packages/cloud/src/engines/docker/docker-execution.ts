import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { ruleError } from '../../support/errors.ts';
import { signalOf } from '../exit-code.ts';
import type { Execution, ExecutionOptions, TerminalSize } from '../instance.ts';
import { EXECUTION_MARKER, isMarked, signalMarked } from '../marked-processes.ts';
import type { DockerClient } from './client/docker-client.ts';
import type { InspectedExecution } from './client/docker-objects.ts';
import { isNotFound, daemonStatus } from './client/docker.errors.ts';
import { FrameParser } from './client/stream-frames.ts';

/** Delays between polls of a command, the last one repeats: the daemon sends no event for it. */
const POLL_DELAYS_MS = [1, 2, 5, 10, 20, 50, 100, 250];
/** After this many polls, about eight seconds, the command counts as started. */
const MAX_START_POLLS = 40;
/** Exit codes of shells: could not be executed, not found. */
const NOT_RUN_EXIT_CODES = [126, 127];
const KILLED_EXIT_CODE = 137;

/** Starts a command in a running container. */
export async function startExecution(
  client: DockerClient,
  containerId: string,
  argv: readonly string[],
  { tty, env = {} }: ExecutionOptions,
): Promise<Execution> {
  if (argv.length === 0) throw ruleError('there is no command to run');
  // The daemon has no call to signal a command; the marker finds the command and its children.
  const marker = randomUUID();
  const variables = { ...(tty !== undefined && { TERM: 'xterm-256color' }), ...env };
  const exec = await createExecution(client, containerId, {
    Cmd: argv,
    Env: [
      ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      `${EXECUTION_MARKER}=${marker}`,
    ],
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: tty !== undefined,
  });
  const connection = await client.upgrade(`${exec}/start`, { Detach: false, Tty: tty !== undefined });
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const delivered = pipeOutput(connection, tty !== undefined, stdout, stderr);
  const state = await waitUntilStarted(client, exec);
  if (state.exitCode !== null && NOT_RUN_EXIT_CODES.includes(state.exitCode) && state.pid === 0)
    throw ruleError(
      `the command ${JSON.stringify(argv[0])} could not be run in the container: ${(await readAll(stdout)).trim()}`,
    );
  const resize = async (size: TerminalSize): Promise<void> => {
    if (tty === undefined) return;
    try {
      await client.post(`${exec}/resize`, { query: { w: size.columns, h: size.rows } });
    } catch (error) {
      // The daemon refuses to resize a command that has ended. No response at all is an error.
      if (daemonStatus(error) === undefined) throw error;
    }
  };
  if (tty !== undefined) await resize(tty);
  const exited = delivered.then(async () => {
    const exitCode = await exitCodeOf(client, exec);
    return { exitCode, signal: signalOf(exitCode) };
  });
  // Callers may ignore the exit.
  exited.catch(() => undefined);
  return {
    stdin: connection,
    stdout,
    stderr,
    exited,
    resize,
    kill: (signal = 'SIGTERM') => {
      // With a local daemon, no program of the image is needed.
      if (isMarked(state.pid, EXECUTION_MARKER, marker) && signalMarked(EXECUTION_MARKER, marker, signal))
        return;
      kill(client, containerId, marker, signal).catch(() => connection.destroy());
    },
  };
}

/** Answers with the path of the execution, which does not run yet. */
async function createExecution(client: DockerClient, containerId: string, body: object): Promise<string> {
  const { Id: id } = await client.post<{ Id: string }>(`/containers/${containerId}/exec`, { body });
  return `/exec/${id}`;
}

/** Copies the stream to both outputs with back-pressure. Resolves at its end. */
async function pipeOutput(
  connection: Duplex,
  terminal: boolean,
  stdout: PassThrough,
  stderr: PassThrough,
): Promise<void> {
  const frames = new FrameParser();
  // A write error needs no report: the exit shows that the command has ended.
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
    // The daemon or the container is gone: the exit code decides.
  }
  connection.destroy();
  stdout.end();
  stderr.end();
}

/** The daemon reports a command as running before its process exists. */
async function waitUntilStarted(
  client: DockerClient,
  exec: string,
): Promise<{ exitCode: number | null; pid: number }> {
  for (let attempt = 0; ; attempt += 1) {
    const {
      Running: running,
      ExitCode: exitCode,
      Pid: pid,
    } = await client.get<InspectedExecution>(`${exec}/json`);
    if (pid > 0 || (!running && exitCode !== null) || attempt === MAX_START_POLLS)
      return { exitCode: running ? null : exitCode, pid };
    await waitBeforePoll(attempt);
  }
}

async function exitCodeOf(client: DockerClient, exec: string): Promise<number> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const { Running: running, ExitCode: exitCode } = await client.get<InspectedExecution>(`${exec}/json`);
      if (!running) return exitCode ?? KILLED_EXIT_CODE;
    } catch (error) {
      // It was removed with its container.
      if (isNotFound(error)) return KILLED_EXIT_CODE;
      throw error;
    }
    await waitBeforePoll(attempt);
  }
}

async function waitBeforePoll(attempt: number): Promise<void> {
  await pause(POLL_DELAYS_MS[Math.min(attempt, POLL_DELAYS_MS.length - 1)]);
}

async function kill(
  client: DockerClient,
  containerId: string,
  marker: string,
  signal: NodeJS.Signals,
): Promise<void> {
  const find =
    `for p in /proc/[0-9]*; do grep -qs ${EXECUTION_MARKER}=${marker} $p/environ && kill -s ` +
    `${signal.slice('SIG'.length)} \${p#/proc/}; done; true`;
  const exec = await createExecution(client, containerId, { Cmd: ['sh', '-c', find] });
  await client.post(`${exec}/start`, { body: { Detach: true } });
}

async function readAll(stream: PassThrough): Promise<string> {
  return Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>)).toString();
}
