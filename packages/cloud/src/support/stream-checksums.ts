import { Worker } from 'node:worker_threads';
import { createChecksum } from './checksums.ts';
import type { ChecksumName } from './checksums.ts';
import { BerthError } from './errors.ts';
import { siblingProgram } from './program-files.ts';

/**
 * What is given to the thread at a time. MD5, SHA-256 and CRC-32 of a megabyte take 5 ms, in which nobody else would
 * be served; to hand it over takes 0.3 ms. What is smaller is done here.
 */
const PIECE_BYTES = 1024 ** 2;
/** The thread ends when it has been idle for so long. */
const IDLE_MS = 10_000;
const NO_BYTES = new Uint8Array(0);

export interface ChecksumRequest {
  id: number;
  names: readonly ChecksumName[];
  bytes: Uint8Array;
  /** The digests are wanted, or nobody wants them any more. */
  last: boolean;
}

export interface ChecksumReply {
  id: number;
  digests: Uint8Array[];
}

type Waiting = PromiseWithResolvers<Uint8Array[]>;

/** The thread that all streams share. Each has one piece there at most, so they take turns. */
class ChecksumThread {
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | undefined;
  /** Those that the thread has begun. */
  #streams = 0;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 0;

  /** A stream keeps its thread: another one would not have its first bytes. */
  open(): { id: number; thread: Worker } {
    clearTimeout(this.#idle);
    this.#streams += 1;
    this.#nextId += 1;
    this.#thread ??= this.#start();
    return { id: this.#nextId, thread: this.#thread };
  }

  send(thread: Worker, request: ChecksumRequest): Promise<Uint8Array[]> {
    if (thread !== this.#thread) return Promise.reject(lost());
    const waiting = Promise.withResolvers<Uint8Array[]>();
    this.#waiting.set(request.id, waiting);
    thread.postMessage(request, request.bytes === NO_BYTES ? [] : [request.bytes.buffer as ArrayBuffer]);
    return waiting.promise;
  }

  closed(): void {
    this.#streams -= 1;
    if (this.#streams === 0) this.#idle = setTimeout(() => void this.#thread?.terminate(), IDLE_MS).unref();
  }

  async terminate(): Promise<void> {
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const thread = new Worker(siblingProgram('checksum-thread', import.meta.url));
    thread.unref();
    thread.on('message', ({ id, digests }: ChecksumReply) => this.#take(id)?.resolve(digests));
    // What follows says it to those that wait.
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
      for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(lost());
    });
    return thread;
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }
}

const shared = new ChecksumThread();

/** For tests: ends the thread as a fault would. */
export const endChecksumThread = (): Promise<void> => shared.terminate();

/** Checksums of a stream. Those of a long one are computed on another thread. */
export class StreamChecksums {
  readonly #names: readonly ChecksumName[];
  #pieces: Uint8Array[] = [];
  #size = 0;
  #remote: { id: number; thread: Worker } | undefined;
  #isOver = false;

  constructor(names: readonly ChecksumName[]) {
    this.#names = names;
  }

  /** Waits while the thread is busy. The bytes must not change until the next call. */
  async update(bytes: Uint8Array): Promise<void> {
    if (this.#names.length === 0) return;
    this.#pieces.push(bytes);
    this.#size += bytes.length;
    if (this.#size >= PIECE_BYTES) await this.#send(false);
  }

  /** In the order of the names. */
  async digests(): Promise<Buffer[]> {
    this.#isOver = true;
    if (this.#remote === undefined)
      return this.#names.map((name) => {
        const checksum = createChecksum(name);
        for (const piece of this.#pieces) checksum.update(piece);
        return checksum.digest();
      });
    try {
      return (await this.#send(true)).map((digest) => Buffer.from(digest));
    } finally {
      shared.closed();
    }
  }

  /** Call it in any case: a stream that broke off is forgotten. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pieces = [];
    this.#size = 0;
    if (this.#remote === undefined) return;
    this.#send(true).catch(() => undefined);
    shared.closed();
  }

  #send(last: boolean): Promise<Uint8Array[]> {
    this.#remote ??= shared.open();
    // A copy: the pieces may be parts of larger buffers, and are still to be written.
    const bytes = this.#size === 0 ? NO_BYTES : copyOf(this.#pieces, this.#size);
    this.#pieces = [];
    this.#size = 0;
    return shared.send(this.#remote.thread, { id: this.#remote.id, names: this.#names, bytes, last });
  }
}

function copyOf(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const copy = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    copy.set(piece, at);
    at += piece.length;
  }
  return copy;
}

function lost(): BerthError {
  return new BerthError('unavailable', 'the checksum of the upload could not be computed; try again');
}
