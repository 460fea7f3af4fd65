import type { Socket } from 'node:net';
import type { Request } from '../raw-http.ts';
import { MAX_COALESCED_BYTES } from './gateway-limits.ts';

/**
 * The body of a request, if it has arrived whole, as small ones mostly have; undefined if not, or if it is
 * large.
 */
export function takeBufferedBody(request: Request, length: number | undefined): Buffer | undefined {
  if (
    length === undefined ||
    length === 0 ||
    length > MAX_COALESCED_BYTES ||
    request.readableLength !== length
  )
    return undefined;
  return (request.read() as Buffer | null) ?? undefined;
}

/** Streams the body of a request to the worker, no faster than the worker reads, and counts its bytes. */
export class RequestBodySender {
  readonly #request: Request;
  readonly #socket: Socket;
  /** Undefined if the client sends chunks; then the worker gets chunks too. */
  readonly #length: number | undefined;
  readonly #limit: number;
  readonly #tooLarge: () => void;
  readonly #sent: () => void;
  #size = 0;
  #done = false;
  readonly #onData = (chunk: Buffer): void => this.#send(chunk);
  readonly #onEnd = (): void => this.#end();

  constructor(
    request: Request,
    socket: Socket,
    {
      length,
      limit,
      tooLarge,
      sent,
    }: { length: number | undefined; limit: number; tooLarge: () => void; sent: () => void },
  ) {
    this.#request = request;
    this.#socket = socket;
    this.#length = length;
    this.#limit = limit;
    this.#tooLarge = tooLarge;
    this.#sent = sent;
  }

  /** The whole body was sent. */
  get done(): boolean {
    return this.#done;
  }

  start(): void {
    this.#request.on('data', this.#onData).on('end', this.#onEnd);
  }

  resume(): void {
    this.#request.resume();
  }

  stop(): void {
    this.#request.off('data', this.#onData).off('end', this.#onEnd);
  }

  #send(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#limit) return this.#tooLarge();
    if (this.#length !== undefined) {
      if (!this.#socket.write(chunk)) this.#request.pause();
      if (this.#size === this.#length) this.#complete();
      return;
    }
    this.#socket.cork();
    this.#socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
    this.#socket.write(chunk);
    const flows = this.#socket.write('\r\n', 'latin1');
    this.#socket.uncork();
    if (!flows) this.#request.pause();
  }

  #end(): void {
    if (this.#length !== undefined) return this.#complete();
    const { rawTrailers } = this.#request;
    let text = '0\r\n';
    for (let at = 0; at < rawTrailers.length; at += 2)
      text += `${rawTrailers[at]}: ${rawTrailers[at + 1]}\r\n`;
    this.#socket.write(`${text}\r\n`, 'latin1');
    this.#complete();
  }

  #complete(): void {
    if (this.#done) return;
    this.#done = true;
    this.#sent();
  }
}
