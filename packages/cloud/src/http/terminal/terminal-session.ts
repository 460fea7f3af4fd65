import type { Readable } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { RawData, WebSocket } from 'ws';
import type { OpenTerminal } from '../../resources/terminals/terminals.ts';
import { isAccessError } from '../../auth/authenticator.ts';
import { BerthError } from '../../support/errors.ts';
import { isTerminalSize } from './terminal-options.ts';

const PING_MS = 20_000;
/** A command whose client is gone is told, and after this long ended. */
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

/** How a connection ends, beyond what WebSockets have. */
const CLOSE_CODES = { ended: 1000, goingAway: 1001, badMessage: 1007, defect: 1011, keyGone: 4401 } as const;

type Execution = OpenTerminal['execution'];

export interface TerminalSessionDeps {
  webSocket: WebSocket;
  opened: OpenTerminal;
  /** Rejects when whoever opened this may not any more. Asked at the beginning, whenever keys change, and with each ping: a key may also expire. */
  authorize(): Promise<unknown>;
  log: FastifyBaseLogger;
  pingMs?: number;
  onClose(): void;
}

/** One command and the client that speaks with it: neither goes faster than the other takes it, and they end together. */
export class TerminalSession {
  readonly #deps: TerminalSessionDeps;
  readonly #pinging: NodeJS.Timeout;
  #answered = true;
  #over = false;
  /** Whose bytes the last binary frame held. */
  #stream: 'stdout' | 'stderr' = 'stdout';

  constructor(deps: TerminalSessionDeps) {
    this.#deps = deps;
    this.#pinging = setInterval(() => this.#ping(), deps.pingMs ?? PING_MS);
  }

  start(): void {
    const { webSocket, opened, log } = this.#deps;
    const { execution, argv, tty, note } = opened;
    webSocket.on('message', (data, isBinary) => this.#hear(data, isBinary));
    webSocket.on('pong', () => (this.#answered = true));
    webSocket.on('error', (error) => log.debug({ err: error }, 'the connection of a terminal failed'));
    webSocket.on('close', () => this.#end());
    this.#tell({ type: 'open', command: argv, tty, ...(note !== null && { note }) });
    this.reauthorize();
    this.#converse(execution).catch((error: unknown) => {
      if (this.#over) return;
      log.warn({ err: error }, 'a terminal broke off');
      this.#tell({
        type: 'error',
        message: error instanceof BerthError ? error.message : 'the terminal broke off',
      });
      webSocket.close(CLOSE_CODES.defect, 'the terminal broke off');
    });
  }

  shutDown(): void {
    this.#cut(CLOSE_CODES.goingAway, 'this server stops');
  }

  /** Whoever opened this and may not any more is cut off, and so is the command. Where nobody can say, it goes on. */
  reauthorize(): void {
    this.#deps.authorize().catch((error: unknown) => {
      if (isAccessError(error)) this.#cut(CLOSE_CODES.keyGone, 'the key does not open this any more');
    });
  }

  /** Does not wait for the client's own word: one that gives none would go on typing. */
  #cut(code: number, reason: string): void {
    this.#deps.webSocket.close(code, reason);
    this.#end();
  }

  async #converse({ stdout, stderr, exited }: Execution): Promise<void> {
    const { webSocket } = this.#deps;
    const [end] = await Promise.all([exited, this.#pass(stdout, 'stdout'), this.#pass(stderr, 'stderr')]);
    if (this.#over) return;
    this.#tell({ type: 'exit', ...end });
    webSocket.close(CLOSE_CODES.ended, 'the command has ended');
  }

  /** One piece at a time: the next is read when this one has left. */
  async #pass(output: Readable, stream: 'stdout' | 'stderr'): Promise<void> {
    for await (const chunk of output as AsyncIterable<Buffer>) {
      if (this.#over) return;
      if (this.#stream !== stream) this.#tell({ type: 'stream', stream });
      this.#stream = stream;
      await new Promise<void>((resolve) =>
        this.#deps.webSocket.send(chunk, { binary: true }, () => resolve()),
      );
    }
  }

  #hear(data: RawData, isBinary: boolean): void {
    if (this.#over) return;
    if (isBinary) return this.#type(data as Buffer);
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
        return this.#misunderstood(`signal: one of ${[...SIGNALS].join(', ')}`);
      default:
        return this.#misunderstood('a text frame is JSON with a type: resize, eof or signal');
    }
  }

  #type(bytes: Buffer): void {
    const { webSocket, opened } = this.#deps;
    const { stdin } = opened.execution;
    if (!stdin.writable || stdin.write(bytes) || webSocket.isPaused) return;
    const goOn = (): void => {
      stdin.off('drain', goOn).off('close', goOn);
      webSocket.resume();
    };
    webSocket.pause();
    stdin.on('drain', goOn).on('close', goOn);
  }

  #resize(columns: unknown, rows: unknown): void {
    if (!isTerminalSize(columns) || !isTerminalSize(rows))
      return this.#misunderstood('resize: columns and rows are whole numbers');
    this.#deps.opened.execution
      .resize({ columns, rows })
      .catch((error: unknown) => this.#deps.log.debug({ err: error }, 'a terminal could not be resized'));
  }

  #misunderstood(what: string): void {
    this.#tell({ type: 'error', message: `this was not understood: ${what}` });
    this.#deps.webSocket.close(CLOSE_CODES.badMessage, 'a message was not understood');
  }

  #tell(message: Record<string, unknown>): void {
    this.#deps.webSocket.send(JSON.stringify(message), () => undefined);
  }

  /** Whoever does not answer is gone. One whose command does not read cannot be heard, and is given time. */
  #ping(): void {
    const { webSocket } = this.#deps;
    if (!this.#answered && !webSocket.isPaused) return webSocket.terminate();
    this.#answered = false;
    webSocket.ping(() => undefined);
    this.reauthorize();
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#pinging);
    terminateCommand(this.#deps.opened.execution);
    this.#deps.onClose();
  }
}

/** Ends a command whose client is gone: as when a terminal is closed, and for good where it does not listen. */
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
