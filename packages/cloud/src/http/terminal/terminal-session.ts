import type { Readable } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { RawData, WebSocket } from 'ws';
import type { OpenTerminal } from '../../resources/terminals/terminals.ts';
import { BerthError } from '../../support/errors.ts';
import { isTerminalSize } from './terminal-options.ts';

const PING_MS = 20_000;
/** A command whose client has disconnected gets SIGHUP, and SIGKILL after this time. */
const HANGUP_GRACE_MS = 2_000;
/** Signals that a client may send to its command. */
const SIGNALS: ReadonlySet<string> = new Set([
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
]);

/** WebSocket close codes. */
const CLOSE_CODES = { ended: 1000, goingAway: 1001, badMessage: 1007, defect: 1011, keyGone: 4401 } as const;

type Execution = OpenTerminal['execution'];

export interface TerminalSessionDeps {
  webSocket: WebSocket;
  opened: OpenTerminal;
  log: FastifyBaseLogger;
  pingMs?: number;
  onClose(): void;
}

/** One command and its client. Each side is slowed to the speed of the other, and they end together. */
export class TerminalSession {
  readonly #deps: TerminalSessionDeps;
  readonly #pingTimer: NodeJS.Timeout;
  #pongReceived = true;
  #ended = false;
  /** The stream of the last binary frame. */
  #stream: 'stdout' | 'stderr' = 'stdout';

  constructor(deps: TerminalSessionDeps) {
    this.#deps = deps;
    this.#pingTimer = setInterval(() => this.#ping(), deps.pingMs ?? PING_MS);
  }

  start(): void {
    const { webSocket, opened, log } = this.#deps;
    const { execution, argv, tty, note } = opened;
    webSocket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    webSocket.on('pong', () => (this.#pongReceived = true));
    webSocket.on('error', (error) => log.debug({ err: error }, 'the connection of a terminal failed'));
    webSocket.on('close', () => this.#end());
    this.#send({ type: 'open', command: argv, tty, ...(note !== null && { note }) });
    this.#relay(execution).catch((error: unknown) => {
      if (this.#ended) return;
      log.warn({ err: error }, 'the connection of a terminal was lost');
      this.#send({
        type: 'error',
        message: error instanceof BerthError ? error.message : 'the terminal broke off',
      });
      webSocket.close(CLOSE_CODES.defect, 'the terminal broke off');
    });
  }

  shutDown(): void {
    this.#disconnect(CLOSE_CODES.goingAway, 'this server stops');
  }

  /** Ends the session, and the command, of a client that has lost its access. */
  keyRevoked(): void {
    this.#disconnect(CLOSE_CODES.keyGone, 'the key does not open this any more');
  }

  /** Does not wait for the client's close frame: without one it could continue typing. */
  #disconnect(code: number, reason: string): void {
    this.#deps.webSocket.close(code, reason);
    this.#end();
  }

  async #relay({ stdout, stderr, exited }: Execution): Promise<void> {
    const { webSocket } = this.#deps;
    const [end] = await Promise.all([
      exited,
      this.#sendOutput(stdout, 'stdout'),
      this.#sendOutput(stderr, 'stderr'),
    ]);
    if (this.#ended) return;
    this.#send({ type: 'exit', ...end });
    webSocket.close(CLOSE_CODES.ended, 'the command has ended');
  }

  /** One piece at a time: the next is read when this one is sent. */
  async #sendOutput(output: Readable, stream: 'stdout' | 'stderr'): Promise<void> {
    for await (const chunk of output as AsyncIterable<Buffer>) {
      if (this.#ended) return;
      if (this.#stream !== stream) this.#send({ type: 'stream', stream });
      this.#stream = stream;
      await new Promise<void>((resolve) =>
        this.#deps.webSocket.send(chunk, { binary: true }, () => resolve()),
      );
    }
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#ended) return;
    if (isBinary) return this.#writeInput(data as Buffer);
    const message = parseMessage(String(data));
    const { execution } = this.#deps.opened;
    switch (message?.['type']) {
      case 'resize':
        return this.#resize(message['columns'], message['rows']);
      case 'eof':
        return void execution.stdin.end();
      case 'signal':
        if (typeof message['signal'] === 'string' && SIGNALS.has(message['signal']))
          return execution.kill(message['signal'] as NodeJS.Signals);
        return this.#rejectMessage(`signal: one of ${[...SIGNALS].join(', ')}`);
      default:
        return this.#rejectMessage('a text frame is JSON with a type: resize, eof or signal');
    }
  }

  #writeInput(bytes: Buffer): void {
    const { webSocket, opened } = this.#deps;
    const { stdin } = opened.execution;
    if (!stdin.writable || stdin.write(bytes) || webSocket.isPaused) return;
    const resume = (): void => {
      stdin.off('drain', resume).off('close', resume);
      webSocket.resume();
    };
    webSocket.pause();
    stdin.on('drain', resume).on('close', resume);
  }

  #resize(columns: unknown, rows: unknown): void {
    if (!isTerminalSize(columns) || !isTerminalSize(rows))
      return this.#rejectMessage('resize: columns and rows are whole numbers');
    this.#deps.opened.execution
      .resize({ columns, rows })
      .catch((error: unknown) => this.#deps.log.debug({ err: error }, 'a terminal could not be resized'));
  }

  #rejectMessage(what: string): void {
    this.#send({ type: 'error', message: `this was not understood: ${what}` });
    this.#deps.webSocket.close(CLOSE_CODES.badMessage, 'a message was not understood');
  }

  #send(message: Record<string, unknown>): void {
    this.#deps.webSocket.send(JSON.stringify(message), () => undefined);
  }

  /**
   * Ends the connection of a client that did not answer the last ping. While its command does not read, its
   * pong cannot be read either.
   */
  #ping(): void {
    const { webSocket } = this.#deps;
    if (!this.#pongReceived && !webSocket.isPaused) return webSocket.terminate();
    this.#pongReceived = false;
    webSocket.ping(() => undefined);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#pingTimer);
    terminateCommand(this.#deps.opened.execution);
    this.#deps.onClose();
  }
}

/**
 * Ends a command whose client has disconnected: with SIGHUP, as when a terminal is closed, then with SIGKILL.
 */
export function terminateCommand(execution: Execution): void {
  const { stdin, stdout, stderr, exited } = execution;
  stdin.destroy();
  for (const output of [stdout, stderr]) output.resume();
  execution.kill('SIGHUP');
  const timer = setTimeout(() => execution.kill('SIGKILL'), HANGUP_GRACE_MS);
  const over = (): void => clearTimeout(timer);
  exited.then(over, over);
}

function parseMessage(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
