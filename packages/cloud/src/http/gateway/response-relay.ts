import type { Response } from '../raw-http.ts';
import { requestIdOf } from '../request-id.ts';
import type { ForwardedPath } from './gateway-url.ts';
import { clientResponseHeaders } from './gateway-headers.ts';
import { SANDBOX } from './page-isolation.ts';
import type { ProxyPolicy } from './proxy-policy.ts';
import { MAX_COALESCED_BYTES } from './gateway-limits.ts';
import { badGateway, sendGatewayError, responseTooLarge } from './gateway.errors.ts';
import type { RawHeaders, UpstreamResponseHead } from './upstream/upstream-response-parser.ts';

export interface ResponseRelayOptions {
  response: Response;
  /** Named in the response, if the policy says so. */
  workerId: string | undefined;
  policy: ProxyPolicy;
  url: ForwardedPath;
  /** Its page gets no access to the console, whose origin it has. */
  isolated?: boolean;
  /** The host of the client's request. */
  host: string | undefined;
  method: string;
  maxBodyBytes: number;
}

/** Streams a worker's response to the client. `head` and `data` return false if the exchange must end. */
export class ResponseRelay {
  readonly #options: ResponseRelayOptions;
  #size = 0;
  /** The head waits for the rest of its packet. */
  #headPending = false;
  /** The first piece of the body, which waits with the head. */
  #firstChunk: Buffer | undefined;
  /** Whether the client reads fast enough, since the last flush. */
  #keepsUp = true;

  constructor(options: ResponseRelayOptions) {
    this.#options = options;
  }

  head(head: UpstreamResponseHead): boolean {
    const { response, workerId, policy, url, isolated, host, method, maxBodyBytes } = this.#options;
    if (head.length !== undefined && head.length > maxBodyBytes && method !== 'HEAD' && head.status !== 304) {
      sendGatewayError(response, responseTooLarge(maxBodyBytes), workerId);
      return false;
    }
    try {
      const headers = clientResponseHeaders(head, workerId, url, host, requestIdOf(response.req));
      if (isolated === true) headers.push('Content-Security-Policy', SANDBOX);
      response.writeHead(head.status, head.message, headers);
    } catch (error) {
      sendGatewayError(
        response,
        badGateway(
          `its response is not valid HTTP (${error instanceof Error ? error.message : String(error)})`,
          policy,
        ),
        workerId,
      );
      return false;
    }
    this.#headPending = true;
    return true;
  }

  /**
   * The bytes are valid until the next flush, so a copy is written. A response that grows too large is
   * aborted, so that it does not look whole.
   */
  data(chunk: Buffer): boolean {
    const { response, maxBodyBytes } = this.#options;
    this.#size += chunk.length;
    if (this.#size > maxBodyBytes) {
      response.destroy();
      return false;
    }
    if (this.#headPending && this.#firstChunk === undefined && chunk.length <= MAX_COALESCED_BYTES) {
      this.#firstChunk = chunk;
      return true;
    }
    this.#sendFirstChunk();
    this.#keepsUp = response.write(Buffer.from(chunk));
    return true;
  }

  end(trailers: RawHeaders): void {
    const { response } = this.#options;
    if (trailers.length > 0) response.addTrailers(pairs(trailers));
    this.#headPending = false;
    // As text, it leaves in one write with the head.
    if (this.#firstChunk === undefined) response.end();
    else response.end(this.#firstChunk.toString('latin1'), 'latin1');
  }

  /**
   * All received bytes are parsed. A stream may pause here for long, so the head is sent now. Returns whether
   * the client reads fast enough.
   */
  flush(): boolean {
    const { response } = this.#options;
    if (this.#headPending && this.#firstChunk === undefined) response.flushHeaders();
    this.#sendFirstChunk();
    const keptUp = this.#keepsUp;
    this.#keepsUp = true;
    return keptUp;
  }

  #sendFirstChunk(): void {
    this.#headPending = false;
    if (this.#firstChunk === undefined) return;
    this.#keepsUp = this.#options.response.write(Buffer.from(this.#firstChunk));
    this.#firstChunk = undefined;
  }
}

function pairs(raw: RawHeaders): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) found.push([raw[at] as string, raw[at + 1] as string]);
  return found;
}
