import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

const PREFIX = 'rpw_';

/** A worker's own token: it opens the worker side of its endpoint, under its own name, and nothing else. It is computed, not stored. */
export class WorkerTokens {
  readonly #key: Buffer;

  constructor(masterKey: Buffer) {
    this.#key = Buffer.from(hkdfSync('sha256', masterKey, '', 'berth worker tokens', 32));
  }

  tokenFor(endpointId: string, workerId: string): string {
    return PREFIX + createHmac('sha256', this.#key).update(`${endpointId}\n${workerId}`).digest('base64url');
  }

  isToken(text: string): boolean {
    return text.startsWith(PREFIX);
  }

  matches(text: string, endpointId: string, workerId: string): boolean {
    const wanted = Buffer.from(this.tokenFor(endpointId, workerId));
    const given = Buffer.from(text);
    return wanted.length === given.length && timingSafeEqual(wanted, given);
  }
}
