import type { Socket } from 'node:net';
import { UpstreamResponseParser } from './upstream-response-parser.ts';
import type { UpstreamResponseSink } from './upstream-response-parser.ts';

/** Who asked a worker, and is told what comes of it. */
export interface UpstreamListener extends UpstreamResponseSink {
  /** The connection stands. Until then nothing of the request has reached anyone. */
  connected(): void;
  /** What was written has left: more may be. */
  drained(): void;
  /** All that has come so far was told. */
  batchParsed(): void;
  /** From here on the connection belongs to the listener, who speaks another protocol on it. `rest` has come already. */
  upgraded(socket: Socket, rest: Buffer): void;
  /** The connection ended before the answer did. */
  broken(error: Error): void;
}

/** One connection to a worker. It serves one request at a time. */
export class UpstreamConnection {
  /** Where it leads. */
  readonly upstreamKey: string;
  readonly socket: Socket;
  /** When it was last used. */
  idleSince = 0;
  readonly #parser = new UpstreamResponseParser();
  readonly #connectMs: number;
  /** Told when the connection can no longer be used. */
  readonly #onGone: (connection: UpstreamConnection) => void;
  #listener: UpstreamListener | undefined;
  readonly #onData = (bytes: Buffer): void => this.read(bytes);
  readonly #onEnd = (): void => this.#ended();
  readonly #onError = (error: Error): void => this.#broke(error);
  readonly #onClose = (): void => this.#broke(new Error('it closed the connection'));
  readonly #onDrain = (): void => this.#listener?.drained();

  constructor(
    place: string,
    socket: Socket,
    connectMs: number,
    onGone: (connection: UpstreamConnection) => void,
  ) {
    this.upstreamKey = place;
    this.socket = socket;
    this.#connectMs = connectMs;
    this.#onGone = onGone;
    socket
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose)
      .on('drain', this.#onDrain);
  }

  /** What comes is read from the socket as from any stream. */
  readAsStream(): this {
    this.socket.on('data', this.#onData);
    return this;
  }

  /** Readies the connection for one request, whose head and body are then written to the socket. */
  begin(method: string, listener: UpstreamListener, expectsUpgrade = false): void {
    this.#listener = listener;
    this.#parser.begin(method, listener, expectsUpgrade);
    if (!this.socket.connecting) return listener.connected();
    const timer = setTimeout(
      () => this.#broke(new Error(`no connection within ${this.#connectMs} ms`)),
      this.#connectMs,
    );
    this.socket.once('close', () => clearTimeout(timer));
    this.socket.once('connect', () => {
      clearTimeout(timer);
      this.#listener?.connected();
    });
  }

  /** Ends the use for one request; answers whether another may follow. */
  release(): boolean {
    this.#listener = undefined;
    if (this.#parser.reusable && this.socket.writable && this.socket.writableLength === 0) {
      if (this.socket.isPaused()) this.socket.resume();
      return true;
    }
    this.socket.destroy();
    return false;
  }

  /** This has come. The bytes are good until this returns; who wants them longer copies them. */
  read(bytes: Buffer): void {
    try {
      const used = this.#parser.feed(bytes);
      if (this.#parser.upgraded) this.#handOver(bytes.subarray(used));
      else this.#listener?.batchParsed();
    } catch (error) {
      this.#broke(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Ends it now. Nobody is told. */
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
    if (!this.#parser.close()) this.#broke(new Error('it closed the connection'));
  }

  #broke(error: Error): void {
    const listener = this.#listener;
    this.#listener = undefined;
    this.socket.destroy();
    this.#onGone(this);
    listener?.broken(error);
  }
}
