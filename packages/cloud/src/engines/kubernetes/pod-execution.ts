import { randomUUID } from 'node:crypto';
import { PassThrough, Writable } from 'node:stream';
import type WebSocket from 'ws';
import { BerthError, ruleError } from '../../support/errors.ts';
import { signalOf } from '../exit-code.ts';
import type { Execution, ExecutionOptions, TerminalSize } from '../instance.ts';
import { EXECUTION_MARKER } from '../marked-processes.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { CONTAINER_NAME } from './pod-manifest.ts';

const [STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE] = [0, 1, 2, 3, 4, 255];
/** Version 5 can close the standard input; API servers before 1.30 have version 4 only. */
const PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];
const KILLED_EXIT_CODE = 137;
const MAX_BUFFERED_BYTES = 1024 ** 2;

/**
 * Says that it runs, so that a command which is not there is refused, and marks the processes, so that they
 * can be killed.
 */
const WRAPPER = `command -v -- "$1" >/dev/null 2>&1 || { printf '%s missing\\n' "$0"; exit 127; }
printf '%s runs\\n' "$0"; exec "$@"`;

const NO_SHELL = /"sh": (?:executable file not found|.*no such file)/;

export interface PodTarget {
  client: KubernetesClient;
  /** The path of the pod. */
  path: string;
}

/** Starts a command in a running pod. */
export async function startPodExecution(
  target: PodTarget,
  argv: readonly string[],
  { tty, env = {} }: ExecutionOptions,
): Promise<Execution> {
  if (argv.length === 0) throw ruleError('there is no command to run');
  const marker = randomUUID();
  const variables = {
    ...(tty !== undefined && { TERM: 'xterm-256color' }),
    ...env,
    [EXECUTION_MARKER]: marker,
  };
  const exports = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}`);
  const wrapped = ['sh', '-c', [...exports, WRAPPER].join('\n'), marker, ...argv];
  const command = new PodCommand(await open(target, wrapped, tty !== undefined), tty, `${marker} `);
  const answer = await command.firstLine;
  if (answer === 'missing')
    throw ruleError(`the command ${JSON.stringify(argv[0])} could not be run in the container: not found`);
  if (answer === 'runs') return command.execution((signal) => killMarked(target, marker, signal));
  const failure = await command.failure;
  if (!NO_SHELL.test(failure)) throw ruleError(`the command could not be run in the container: ${failure}`);
  // Without a shell the command runs as it is: it gets no variables, and it ends with its connection at the
  // latest.
  return new PodCommand(await open(target, argv, tty !== undefined), tty, undefined).execution();
}

async function open({ client, path }: PodTarget, argv: readonly string[], tty: boolean): Promise<WebSocket> {
  const query = { container: CONTAINER_NAME, command: argv, stdin: true, stdout: true, stderr: !tty, tty };
  return client.connect(`${path}/exec`, query, PROTOCOLS);
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}

/** There is no call to signal a command; the marker finds it and what it started. */
async function killMarked(target: PodTarget, marker: string, signal: NodeJS.Signals): Promise<void> {
  const find =
    `for p in /proc/[0-9]*; do grep -qs ${EXECUTION_MARKER}=${marker} $p/environ && kill -s ` +
    `${signal.slice('SIG'.length)} \${p#/proc/}; done; true`;
  const socket = await open(target, ['sh', '-c', find], false);
  await new Promise((resolve) => socket.once('close', resolve).on('error', resolve));
}

/** One command over a WebSocket: the first byte of a message is the channel. */
class PodCommand {
  readonly #socket: WebSocket;
  readonly #tty: TerminalSize | undefined;
  readonly #prefix: string | undefined;
  readonly #stdout = new PassThrough();
  readonly #stderr = new PassThrough();
  readonly #ended = Promise.withResolvers<{ exitCode: number; message: string }>();
  readonly #firstLine = Promise.withResolvers<string>();
  #head: Buffer | undefined;
  #status: { exitCode: number; message: string } | undefined;

  /** `prefix`: how the wrapper's own line begins; undefined without a wrapper. */
  constructor(socket: WebSocket, tty: TerminalSize | undefined, prefix: string | undefined) {
    this.#head = prefix === undefined ? undefined : Buffer.alloc(0);
    this.#socket = socket;
    this.#tty = tty;
    this.#prefix = prefix;
    socket.binaryType = 'nodebuffer';
    socket.on('message', (data: Buffer) => this.#receive(data));
    socket.on('error', () => socket.terminate());
    socket.on('close', () => this.#end());
    if (tty !== undefined) this.#resize(tty);
  }

  /** `runs`, `missing`, or empty if the command ended before it said either. */
  get firstLine(): Promise<string> {
    return this.#firstLine.promise;
  }

  get failure(): Promise<string> {
    return this.#ended.promise.then(({ message }) => message);
  }

  execution(kill?: (signal: NodeJS.Signals) => Promise<void>): Execution {
    return {
      stdin: this.#stdin(),
      stdout: this.#stdout,
      stderr: this.#stderr,
      exited: this.#ended.promise.then(({ exitCode }) => ({ exitCode, signal: signalOf(exitCode) })),
      resize: async (size) => {
        if (this.#tty !== undefined) this.#resize(size);
      },
      kill: (signal = 'SIGTERM') => {
        if (kill === undefined) this.#socket.terminate();
        else kill(signal).catch(() => this.#socket.terminate());
      },
    };
  }

  #stdin(): Writable {
    const send = (channel: number, data: Buffer, done: (error?: Error | null) => void): void => {
      // A command that has ended needs no input.
      if (this.#socket.readyState !== this.#socket.OPEN) return done();
      this.#socket.send(Buffer.concat([Buffer.from([channel]), data]), () => done());
    };
    return new Writable({
      write: (chunk: Buffer, _, done) => send(STDIN, Buffer.from(chunk), done),
      final: (done) => {
        if (this.#socket.protocol === PROTOCOLS[0]) return send(CLOSE, Buffer.from([STDIN]), done);
        done();
      },
    });
  }

  #resize({ columns, rows }: TerminalSize): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    const size = Buffer.from(JSON.stringify({ Width: columns, Height: rows }));
    this.#socket.send(Buffer.concat([Buffer.from([RESIZE]), size]));
  }

  #receive(message: Buffer): void {
    const payload = message.subarray(1);
    if (message[0] === STDOUT) this.#write(this.#stdout, this.#withoutFirstLine(payload));
    if (message[0] === STDERR) this.#write(this.#stderr, payload);
    if (message[0] === STATUS) this.#status = parseStatus(payload.toString('utf8'));
  }

  /** Takes the wrapper's own line off the output. */
  #withoutFirstLine(payload: Buffer): Buffer {
    if (this.#head === undefined) return payload;
    this.#head = Buffer.concat([this.#head, payload]);
    const end = this.#head.indexOf('\n');
    if (end === -1) return Buffer.alloc(0);
    const line = this.#head.toString('utf8', 0, end).trim();
    const rest = this.#head.subarray(end + 1);
    this.#head = undefined;
    this.#firstLine.resolve(line.startsWith(this.#prefix ?? '') ? line.slice(this.#prefix?.length) : '');
    return rest;
  }

  #write(output: PassThrough, data: Buffer): void {
    if (data.length === 0) return;
    output.write(data);
    if (output.writableLength < MAX_BUFFERED_BYTES || this.#socket.isPaused) return;
    this.#socket.pause();
    output.once('drain', () => this.#socket.resume());
  }

  #end(): void {
    this.#stdout.end();
    this.#stderr.end();
    const ended = this.#status ?? { exitCode: KILLED_EXIT_CODE, message: 'the connection ended' };
    this.#ended.resolve(ended);
    this.#firstLine.resolve('');
  }
}

interface ExecStatus {
  status?: string;
  message?: string;
  reason?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
}

function parseStatus(text: string): { exitCode: number; message: string } {
  try {
    const { status, message = '', details } = JSON.parse(text) as ExecStatus;
    if (status === 'Success') return { exitCode: 0, message };
    const code = details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
    return { exitCode: code === undefined ? 126 : Number(code), message };
  } catch {
    return { exitCode: KILLED_EXIT_CODE, message: text };
  }
}

/** Runs a command to its end, for Berth's own purposes. */
export async function runInPod(
  target: PodTarget,
  argv: readonly string[],
  input?: NodeJS.ReadableStream,
): Promise<{ exitCode: number; stdout: Buffer; stderr: string }> {
  const execution = await startPodExecution(target, argv, {});
  if (input === undefined) execution.stdin.end();
  else input.pipe(execution.stdin);
  const [stdout, stderr, { exitCode }] = await Promise.all([
    Array.fromAsync(execution.stdout as AsyncIterable<Buffer>),
    Array.fromAsync(execution.stderr as AsyncIterable<Buffer>),
    execution.exited,
  ]);
  return { exitCode, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString('utf8') };
}

export function notRunning(id: string, cause?: unknown): BerthError {
  return new BerthError('state', `${id} does not run`, { cause });
}
