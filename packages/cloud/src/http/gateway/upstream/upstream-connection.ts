import type { Socket } from 'node:net';
import { UpstreamResponseParser } from './upstream-response-parser.ts';
import type { UpstreamResponseSink } from './upstream-response-parser.ts';

/** Receives the events of one request to a worker. */
export interface UpstreamListener extends UpstreamResponseSink {
  /** The connection is established. Until then nothing of the request has reached the worker. */
  connected(): void;
  /** The write buffer is empty again. */
  drained(): void;
  /** All bytes received so far are parsed. */
  batchParsed(): void;
  /** The worker agreed to an upgrade. The socket now belongs to the listener; `rest` was received already. */
  upgraded(socket: Socket, rest: Buffer): void;
  /** The connection ended before the response did. */
  broken(error: Error): void;
}

/** One connection to a worker, for one request at a time. */
export class UpstreamConnection {
  /** Host and port. */
  readonly upstreamKey: string;
  readonly socket: Socket;
  /** The time of its last use. */
  idleSince = 0;
  readonly #parser = new UpstreamResponseParser();
  readonly #connectMs: number;
  /** Called when the connection can no longer be used. */
  readonly #onBroken: (connection: UpstreamConnection) => void;
  #listener: UpstreamListener | undefined;
  readonly #onData = (bytes: Buffer): void => this.receive(bytes);
  readonly #onEnd = (): void => this.#ended();
  readonly #onError = (error: Error): void => this.#fail(error);
  readonly #onClose = (): void => this.#fail(new Error('it closed the connection'));
  readonly #onDrain = (): void => this.#listener?.drained();

  constructor(
    upstreamKey: string,
    socket: Socket,
    connectMs: number,
    onBroken: (connection: UpstreamConnection) => void,
  ) {
    this.upstreamKey = upstreamKey;
    this.socket = socket;
    this.#connectMs = connectMs;
    this.#onBroken = onBroken;
    socket
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose)
      .on('drain', this.#onDrain);
  }

  /** Reads from the socket as a stream, not through the shared buffer. */
  readAsStream(): this {
    this.socket.on('data', this.#onData);
    return this;
  }

  /** Prepares for the response to one request, whose head and body are written to the socket. */
  begin(method: string, listener: UpstreamListener, expectsUpgrade = false): void {
    this.#listener = listener;
    this.#parser.begin(method, listener, expectsUpgrade);
    if (!this.socket.connecting) return listener.connected();
    const timer = setTimeout(
      () => this.#fail(new Error(`no connection within ${this.#connectMs} ms`)),
      this.#connectMs,
    );
    this.socket.once('close', () => clearTimeout(timer));
    this.socket.once('connect', () => {
      clearTimeout(timer);
      this.#listener?.connected();
    });
  }

  /** The request is over. Returns whether the connection can be used again; if not, it is closed. */
  release(): boolean {
    this.#listener = undefined;
    if (this.#parser.reusable && this.socket.writable && this.socket.writableLength === 0) {
      if (this.socket.isPaused()) this.socket.resume();
      return true;
    }
    this.socket.destroy();
    return false;
  }

  /** The bytes are valid until this returns. */
  receive(bytes: Buffer): void {
    try {
      const used = this.#parser.feed(bytes);
      if (this.#parser.upgraded) this.#handOver(bytes.subarray(used));
      else this.#listener?.batchParsed();
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Closes it without telling the listener. */
  destroy(): void {
    this.#listener = undefined;
    this.socket.destroy();
  }

  #handOver(rest: Buffer): void {
    const listener = this.#listener;
    this.#listener = undefined;
    this.socket
      .off('data', this.#onData)
      .off('end', this.#onEnd)
      .off('error', this.#onError)
      .off('close', this.#onClose)
      .off('drain', this.#onDrain);
    if (listener === undefined) this.socket.destroy();
    else listener.upgraded(this.socket, rest);
  }

  #ended(): void {
    if (!this.#parser.close()) this.#fail(new Error('it closed the connection'));
  }

  #fail(error: Error): void {
    const listener = this.#listener;
    this.#listener = undefined;
    this.socket.destroy();
    this.#onBroken(this);
    listener?.broken(error);
  }
}
