import type { Readable } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { RawData, WebSocket } from 'ws';
import type { Execution } from '../../engines/instance.ts';
import type { OpenedTerminal } from '../../resources/terminals/terminals.ts';
import { isTurnedAway } from '../../resources/keys/gate.ts';
import { BerthError } from '../../support/errors.ts';
import { isSize } from './wish.ts';

const PING_MS = 20_000;
/** A command whose client is gone is told, and after this long ended. */
const HANG_UP_MS = 2_000;
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
const CLOSE = { ended: 1000, goingAway: 1001, badMessage: 1007, defect: 1011, keyGone: 4401 } as const;

export interface TerminalSessionParts {
  webSocket: WebSocket;
  opened: OpenedTerminal;
  /** Rejects when whoever opened this may not any more. Asked at the beginning, whenever keys change, and with each ping: a key may also expire. */
  admit(): Promise<unknown>;
  log: FastifyBaseLogger;
  pingMs?: number;
  onOver(): void;
}

/** One command and the client that speaks with it: neither goes faster than the other takes it, and they end together. */
export class TerminalSession {
  readonly #parts: TerminalSessionParts;
  readonly #pinging: NodeJS.Timeout;
  #answered = true;
  #over = false;
  /** Whose bytes the last binary frame held. */
  #stream: 'stdout' | 'stderr' = 'stdout';

  constructor(parts: TerminalSessionParts) {
    this.#parts = parts;
    this.#pinging = setInterval(() => this.#ping(), parts.pingMs ?? PING_MS);
  }

  begin(): void {
    const { webSocket, opened, log } = this.#parts;
    const { execution, argv, tty, note } = opened;
    webSocket.on('message', (data, isBinary) => this.#hear(data, isBinary));
    webSocket.on('pong', () => (this.#answered = true));
    webSocket.on('error', (error) => log.debug({ err: error }, 'the connection of a terminal failed'));
    webSocket.on('close', () => this.#end());
    this.#tell({ type: 'open', command: argv, tty, ...(note !== null && { note }) });
    this.checkKey();
    this.#converse(execution).catch((error: unknown) => {
      if (this.#over) return;
      log.warn({ err: error }, 'a terminal broke off');
      this.#tell({
        type: 'error',
        message: error instanceof BerthError ? error.message : 'the terminal broke off',
      });
      webSocket.close(CLOSE.defect, 'the terminal broke off');
    });
  }

  goAway(): void {
    this.#cut(CLOSE.goingAway, 'this server stops');
  }

  /** Whoever opened this and may not any more is cut off, and so is the command. Where nobody can say, it goes on. */
  checkKey(): void {
    this.#parts.admit().catch((error: unknown) => {
      if (isTurnedAway(error)) this.#cut(CLOSE.keyGone, 'the key does not open this any more');
    });
  }

  /** Does not wait for the client's own word: one that gives none would go on typing. */
  #cut(code: number, reason: string): void {
    this.#parts.webSocket.close(code, reason);
    this.#end();
  }

  async #converse({ stdout, stderr, exited }: Execution): Promise<void> {
    const { webSocket } = this.#parts;
    const [end] = await Promise.all([exited, this.#pass(stdout, 'stdout'), this.#pass(stderr, 'stderr')]);
    if (this.#over) return;
    this.#tell({ type: 'exit', ...end });
    webSocket.close(CLOSE.ended, 'the command has ended');
  }

  /** One piece at a time: the next is read when this one has left. */
  async #pass(output: Readable, stream: 'stdout' | 'stderr'): Promise<void> {
    for await (const chunk of output as AsyncIterable<Buffer>) {
      if (this.#over) return;
      if (this.#stream !== stream) this.#tell({ type: 'stream', stream });
      this.#stream = stream;
      await new Promise<void>((resolve) =>
        this.#parts.webSocket.send(chunk, { binary: true }, () => resolve()),
      );
    }
  }

  #hear(data: RawData, isBinary: boolean): void {
    if (this.#over) return;
    if (isBinary) return this.#type(data as Buffer);
    const message = readMessage(String(data));
    const { execution } = this.#parts.opened;
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
    const { webSocket, opened } = this.#parts;
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
    if (!isSize(columns) || !isSize(rows))
      return this.#misunderstood('resize: columns and rows are whole numbers');
    this.#parts.opened.execution
      .resize({ columns, rows })
      .catch((error: unknown) => this.#parts.log.debug({ err: error }, 'a terminal could not be resized'));
  }

  #misunderstood(what: string): void {
    this.#tell({ type: 'error', message: `this was not understood: ${what}` });
    this.#parts.webSocket.close(CLOSE.badMessage, 'a message was not understood');
  }

  #tell(message: Record<string, unknown>): void {
    this.#parts.webSocket.send(JSON.stringify(message), () => undefined);
  }

  /** Whoever does not answer is gone. One whose command does not read cannot be heard, and is given time. */
  #ping(): void {
    const { webSocket } = this.#parts;
    if (!this.#answered && !webSocket.isPaused) return webSocket.terminate();
    this.#answered = false;
    webSocket.ping(() => undefined);
    this.checkKey();
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#pinging);
    endCommand(this.#parts.opened.execution);
    this.#parts.onOver();
  }
}

/** Ends a command whose client is gone: as when a terminal is closed, and for good where it does not listen. */
export function endCommand(execution: Execution): void {
  const { stdin, stdout, stderr, exited } = execution;
  stdin.destroy();
  for (const output of [stdout, stderr]) output.resume();
  execution.kill('SIGHUP');
  const timer = setTimeout(() => execution.kill('SIGKILL'), HANG_UP_MS);
  const over = (): void => clearTimeout(timer);
  exited.then(over, over);
}

function readMessage(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
