import type { Socket } from 'node:net';
import { LineReader } from './line-reader.ts';

/** How long a dead peer may go unnoticed by the system while nothing is said. */
const KEEP_ALIVE_MS = 10_000;
/** Lines are joined up to so many characters; a longer one goes alone. No text can hold any number of large results. */
export const MAX_WRITE_LENGTH = 4 * 1024 * 1024;

export interface ChannelEvents {
  line(line: string): void;
  /** Lines are about to be written: the last moment to add some. */
  beforeWrite(): void;
  /** What was written is on its way: there is space for more. */
  drained(): void;
  /** The connection is gone, and with it these lines, which were never written. */
  closed(unwritten: string[], why: string | undefined): void;
}

/** One open connection. The lines of one turn of the event loop are written in one go, unless they are very large. */
export class ChannelConnection {
  readonly #socket: Socket;
  readonly #events: ChannelEvents;
  #lines: string[] = [];
  #scheduled = false;
  /** The last write is not through yet: what comes meanwhile waits and goes in one go as well. */
  #congested = false;
  #ended = false;
  #closed = false;
  #error: Error | undefined;
  #farewell: NodeJS.Timeout | undefined;
  readonly openedAt = Date.now();
  /** When the server last said anything. */
  lastReceivedAt = Date.now();

  constructor(socket: Socket, head: Buffer, events: ChannelEvents) {
    this.#socket = socket;
    this.#events = events;
    const reader = new LineReader((line) => events.line(line));
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.setTimeout(0);
    if (head.length > 0) socket.unshift(head);
    socket.on('data', (piece: Buffer) => {
      this.lastReceivedAt = Date.now();
      reader.push(piece);
    });
    socket.on('drain', () => {
      this.#congested = false;
      events.drained();
      this.#write();
    });
    socket.on('error', (error) => (this.#error = error));
    socket.on('close', () => {
      this.#closed = true;
      clearTimeout(this.#farewell);
      events.closed(this.#lines, this.#error?.message);
    });
  }

  get congested(): boolean {
    return this.#congested;
  }

  /** It was ended from this side; what still comes in is read. */
  get ended(): boolean {
    return this.#ended;
  }

  send(line: string): void {
    this.#lines.push(line);
    this.scheduleWrite();
  }

  /** Something may have to be written. */
  scheduleWrite(): void {
    if (this.#scheduled || this.#congested || this.#ended || this.#closed) return;
    this.#scheduled = true;
    process.nextTick(() => {
      this.#scheduled = false;
      this.#write();
    });
  }

  /** Writes what waits and says that nothing more comes. The other side then closes, or is not waited for any longer. */
  end(farewellMs: number): void {
    if (this.#ended || this.#closed) return;
    while (this.#lines.length > 0) this.#socket.write(this.#nextText());
    this.#ended = true;
    this.#socket.end();
    this.#farewell = setTimeout(() => this.destroy(), farewellMs);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #write(): void {
    if (this.#congested || this.#ended || this.#closed) return;
    this.#events.beforeWrite();
    while (this.#lines.length > 0 && !this.#congested)
      this.#congested = !this.#socket.write(this.#nextText());
  }

  /** Takes the lines that are written next. */
  #nextText(): string {
    let size = 0;
    const rest = this.#lines.findIndex(
      (line, index) => (size += line.length) > MAX_WRITE_LENGTH && index > 0,
    );
    return `${this.#lines.splice(0, rest < 0 ? this.#lines.length : rest).join('\n')}\n`;
  }
}
