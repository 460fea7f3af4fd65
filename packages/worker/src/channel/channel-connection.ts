import type { Socket } from 'node:net';
import { LineReader } from './line-reader.ts';

/** TCP keep-alive delay: how long a dead peer may go unnoticed on an idle connection. */
const KEEP_ALIVE_MS = 10_000;
/**
 * Lines are joined into one write up to this many characters; a longer line is written alone. This bounds the
 * size of the joined string.
 */
export const MAX_WRITE_LENGTH = 4 * 1024 * 1024;

export interface ChannelEvents {
  line(line: string): void;
  /** Called just before lines are written: the last chance to add some. */
  beforeWrite(): void;
  /** The last write was flushed: there is space for more. */
  drained(): void;
  /** The connection closed. These lines were never written. */
  closed(unwritten: string[], why: string | undefined): void;
}

/**
 * One open connection. The lines of one event loop turn are joined into one write, unless they are very
 * large.
 */
export class ChannelConnection {
  readonly #socket: Socket;
  readonly #events: ChannelEvents;
  #lines: string[] = [];
  #scheduled = false;
  /** A write is in progress. Lines added meanwhile are joined into the next write. */
  #congested = false;
  #ended = false;
  #closed = false;
  #error: Error | undefined;
  #closeTimer: NodeJS.Timeout | undefined;
  readonly openedAt = Date.now();
  /** When the last data from the server arrived. */
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
      clearTimeout(this.#closeTimer);
      events.closed(this.#lines, this.#error?.message);
    });
  }

  get congested(): boolean {
    return this.#congested;
  }

  /** This side was ended; incoming data is still read. */
  get ended(): boolean {
    return this.#ended;
  }

  send(line: string): void {
    this.#lines.push(line);
    this.scheduleWrite();
  }

  /** Schedules a write. */
  scheduleWrite(): void {
    if (this.#scheduled || this.#congested || this.#ended || this.#closed) return;
    this.#scheduled = true;
    process.nextTick(() => {
      this.#scheduled = false;
      this.#write();
    });
  }

  /**
   * Writes the pending lines and ends this side. If the peer does not close in time, the connection is
   * destroyed.
   */
  end(farewellMs: number): void {
    if (this.#ended || this.#closed) return;
    while (this.#lines.length > 0) this.#socket.write(this.#nextText());
    this.#ended = true;
    this.#socket.end();
    this.#closeTimer = setTimeout(() => this.destroy(), farewellMs);
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

  /** Removes and returns the lines of the next write. */
  #nextText(): string {
    let size = 0;
    const rest = this.#lines.findIndex(
      (line, index) => (size += line.length) > MAX_WRITE_LENGTH && index > 0,
    );
    return `${this.#lines.splice(0, rest < 0 ? this.#lines.length : rest).join('\n')}\n`;
  }
}
