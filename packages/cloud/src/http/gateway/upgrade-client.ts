import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ServerResponse } from '../../support/node-http.ts';
import type { Request, Response } from '../raw-http.ts';

/** Detects a peer that vanished without closing. */
const TCP_KEEP_ALIVE_MS = 30_000;
/** What a client may send before the worker has agreed. */
const MAX_EARLY_BYTES = 64 * 1024;

/** Removes the timeouts of a connection that may stay open for long. */
export function keepSocketOpen(socket: Duplex): void {
  if (socket instanceof Socket) socket.setTimeout(0).setNoDelay(true).setKeepAlive(true, TCP_KEEP_ALIVE_MS);
}

/** The connection of a client that asks for an upgrade, and what it has sent so far. */
export class UpgradeClient {
  readonly socket: Duplex;
  readonly #early: Buffer[] = [];
  #size = 0;
  readonly #disconnectSignal = new AbortController();
  readonly #onData = (chunk: Buffer): void => this.#buffer(chunk);
  readonly #onClose = (): void => {
    this.#disconnectSignal.abort();
    this.socket.destroy();
  };

  constructor(socket: Duplex, head: Buffer) {
    this.socket = socket;
    if (head.length > 0) this.#buffer(head);
    // A closed connection is noticed only while it is read.
    socket.on('data', this.#onData).on('end', this.#onClose).on('close', this.#onClose);
    socket.on('error', () => socket.destroy());
    keepSocketOpen(socket);
  }

  /** Aborts when the client disconnects before it is answered. */
  get gone(): AbortSignal {
    return this.#disconnectSignal.signal;
  }

  /** Stops reading; returns what was received so far. */
  detach(): Buffer {
    this.socket.off('data', this.#onData).off('end', this.#onClose).off('close', this.#onClose);
    return Buffer.concat(this.#early);
  }

  /** A response for a client without an upgrade. The connection ends after it. */
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

  #buffer(chunk: Buffer): void {
    this.#early.push(chunk);
    this.#size += chunk.length;
    if (this.#size > MAX_EARLY_BYTES) this.socket.destroy();
  }
}
