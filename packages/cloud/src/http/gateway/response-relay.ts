import type { Response } from '../raw-http.ts';
import type { ForwardedPath } from './gateway-url.ts';
import { clientResponseHeaders } from './gateway-headers.ts';
import type { ProxyPolicy } from './proxy-policy.ts';
import { MAX_COALESCED_BYTES } from './gateway-limits.ts';
import { badGateway, sendGatewayError, responseTooLarge } from './gateway.errors.ts';
import type { RawHeaders, UpstreamResponseHead } from './upstream/upstream-response-parser.ts';

export interface ResponseRelayOptions {
  response: Response;
  /** Named in the answer, where that is the manner. */
  workerId: string | undefined;
  policy: ProxyPolicy;
  url: ForwardedPath;
  /** The host that the client asked for. */
  host: string | undefined;
  method: string;
  maxBodyBytes: number;
}

/** Passes a worker's answer on as it comes. Every step answers whether it may go on. */
export class ResponseRelay {
  readonly #parts: ResponseRelayOptions;
  #size = 0;
  /** The head waits for what has come with it. */
  #unsent = false;
  /** The first piece, which waits with the head. */
  #first: Buffer | undefined;
  /** Since the last flush. */
  #keepsUp = true;

  constructor(parts: ResponseRelayOptions) {
    this.#parts = parts;
  }

  head(head: UpstreamResponseHead): boolean {
    const { response, workerId, policy, url, host, method, maxBodyBytes } = this.#parts;
    if (head.length !== undefined && head.length > maxBodyBytes && method !== 'HEAD' && head.status !== 304) {
      sendGatewayError(response, responseTooLarge(maxBodyBytes), workerId);
      return false;
    }
    try {
      response.writeHead(head.status, head.message, clientResponseHeaders(head, workerId, url, host));
    } catch (error) {
      sendGatewayError(
        response,
        badGateway(
          `its answer is not valid HTTP (${error instanceof Error ? error.message : String(error)})`,
          policy,
        ),
        workerId,
      );
      return false;
    }
    this.#unsent = true;
    return true;
  }

  /** The bytes are good until the next flush, so what is passed on is a copy. One that has grown too large is cut off, so that nobody takes a part for the whole. */
  data(chunk: Buffer): boolean {
    const { response, maxBodyBytes } = this.#parts;
    this.#size += chunk.length;
    if (this.#size > maxBodyBytes) {
      response.destroy();
      return false;
    }
    if (this.#unsent && this.#first === undefined && chunk.length <= MAX_COALESCED_BYTES) {
      this.#first = chunk;
      return true;
    }
    this.#sendFirst();
    this.#keepsUp = response.write(Buffer.from(chunk));
    return true;
  }

  end(trailers: RawHeaders): void {
    const { response } = this.#parts;
    if (trailers.length > 0) response.addTrailers(pairs(trailers));
    this.#unsent = false;
    // As text, it becomes one piece with the head.
    if (this.#first === undefined) response.end();
    else response.end(this.#first.toString('latin1'), 'latin1');
  }

  /** All that has come was told. Events may be long in coming; whoever waits for them wants to see at once that they will. Answers whether the client keeps up. */
  flush(): boolean {
    const { response } = this.#parts;
    if (this.#unsent && this.#first === undefined) response.flushHeaders();
    this.#sendFirst();
    const keptUp = this.#keepsUp;
    this.#keepsUp = true;
    return keptUp;
  }

  #sendFirst(): void {
    this.#unsent = false;
    if (this.#first === undefined) return;
    this.#keepsUp = this.#parts.response.write(Buffer.from(this.#first));
    this.#first = undefined;
  }
}

function pairs(raw: RawHeaders): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) found.push([raw[at] as string, raw[at + 1] as string]);
  return found;
}
