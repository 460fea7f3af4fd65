import { createHmac, timingSafeEqual } from 'node:crypto';

/** The header of a request that one server makes to another. */
export const PEER_HEADER = 'x-berth-peer';
/** Clocks of machines differ; an old request is of no use to anybody. */
const MAX_AGE_MS = 300_000;

/**
 * Signs requests between the servers of an installation, which share the master key. Clients cannot make
 * them.
 */
export class PeerSignature {
  readonly #key: Buffer;

  constructor(masterKey: Buffer) {
    this.#key = createHmac('sha256', masterKey).update('requests between servers').digest();
  }

  sign(method: string, path: string, at = Date.now()): string {
    return `${at}.${this.#digest(method, path, at).toString('hex')}`;
  }

  verify(header: string | string[] | undefined, method: string, path: string, now = Date.now()): boolean {
    const [at, digest] = typeof header === 'string' ? header.split('.') : [];
    const signedAt = Number(at);
    if (digest === undefined || !(Math.abs(now - signedAt) <= MAX_AGE_MS)) return false;
    const given = Buffer.from(digest, 'hex');
    const expected = this.#digest(method, path, signedAt);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  #digest(method: string, path: string, at: number): Buffer {
    return createHmac('sha256', this.#key).update(`${at} ${method} ${path}`).digest();
  }
}
