import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Request, Response } from '../raw-http.ts';

/** A peer that vanished without a word is noticed by this. */
const TCP_KEEP_ALIVE_MS = 30_000;
/** What a client may send before it was told that the worker agrees. */
const MAX_EARLY_BYTES = 64 * 1024;

/** A connection that stays open for as long as its ends like. */
export function keepSocketOpen(socket: Duplex): void {
  if (socket instanceof Socket) socket.setTimeout(0).setNoDelay(true).setKeepAlive(true, TCP_KEEP_ALIVE_MS);
}

/** A client's connection that asks to speak another protocol, and what it has sent so far. */
export class UpgradeClient {
  readonly socket: Duplex;
  readonly #early: Buffer[] = [];
  #size = 0;
  readonly #disconnectSignal = new AbortController();
  readonly #onData = (chunk: Buffer): void => this.#keep(chunk);
  readonly #onGone = (): void => {
    this.#disconnectSignal.abort();
    this.socket.destroy();
  };

  constructor(socket: Duplex, head: Buffer) {
    this.socket = socket;
    if (head.length > 0) this.#keep(head);
    // To notice that a client has gone, one has to read.
    socket.on('data', this.#onData).on('end', this.#onGone).on('close', this.#onGone);
    socket.on('error', () => socket.destroy());
    keepSocketOpen(socket);
  }

  /** Aborts when the client gives up before it was answered. */
  get gone(): AbortSignal {
    return this.#disconnectSignal.signal;
  }

  /** Ends the listening; answers what has come meanwhile. */
  detach(): Buffer {
    this.socket.off('data', this.#onData).off('end', this.#onGone).off('close', this.#onGone);
    return Buffer.concat(this.#early);
  }

  /** A response on this connection, for whoever is not let through. It is the last thing on it. */
  createResponse(request: Request): Response {
    this.detach();
    this.socket.resume();
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(this.socket as Socket);
    this.socket.on('drain', () => response.emit('drain'));
    response.on('finish', () => this.socket.end());
    return response;
  }

  #keep(chunk: Buffer): void {
    this.#early.push(chunk);
    this.#size += chunk.length;
    if (this.#size > MAX_EARLY_BYTES) this.socket.destroy();
  }
}
