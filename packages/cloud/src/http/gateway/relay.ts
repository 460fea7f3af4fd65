import type { Response } from '../raw.ts';
import type { GatewayAddress } from './address.ts';
import { replyHeaders } from './headers.ts';
import { badGateway, refuse, responseTooLarge } from './refusals.ts';
import type { RawHeaders, ReplyHead } from './upstream/reply-parser.ts';

export interface RelayParts {
  response: Response;
  workerId: string;
  address: GatewayAddress;
  /** The host that the client asked for. */
  host: string | undefined;
  method: string;
  bodyBytes: number;
}

/** Passes a worker's answer on as it comes. Every step answers whether it may go on. */
export class Relay {
  readonly #parts: RelayParts;
  #size = 0;
  #unsent = false;

  constructor(parts: RelayParts) {
    this.#parts = parts;
  }

  head(head: ReplyHead): boolean {
    const { response, workerId, address, host, method, bodyBytes } = this.#parts;
    if (head.length !== undefined && head.length > bodyBytes && method !== 'HEAD' && head.status !== 304) {
      refuse(response, responseTooLarge(bodyBytes), workerId);
      return false;
    }
    try {
      response.writeHead(head.status, head.message, replyHeaders(head, workerId, address, host));
    } catch (error) {
      refuse(response, badGateway(`its answer is not valid HTTP (${error instanceof Error ? error.message : String(error)})`), workerId);
      return false;
    }
    this.#unsent = true;
    return true;
  }

  /** One that has grown too large is cut off, so that nobody takes a part for the whole. */
  data(chunk: Buffer, slow: () => void): boolean {
    const { response, bodyBytes } = this.#parts;
    this.#size += chunk.length;
    if (this.#size > bodyBytes) {
      response.destroy();
      return false;
    }
    this.#unsent = false;
    if (!response.write(chunk)) slow();
    return true;
  }

  end(trailers: RawHeaders): void {
    const { response } = this.#parts;
    this.#unsent = false;
    if (trailers.length > 0) response.addTrailers(pairs(trailers));
    response.end();
  }

  /** Events may be long in coming; whoever waits for them wants to see at once that they will. */
  flush(): void {
    if (!this.#unsent) return;
    this.#unsent = false;
    this.#parts.response.flushHeaders();
  }
}

function pairs(raw: RawHeaders): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) found.push([raw[at] as string, raw[at + 1] as string]);
  return found;
}
