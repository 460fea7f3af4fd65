import { createHmac } from 'node:crypto';
import { deriveKey, timingSafeEqualText } from '../support/crypto.ts';

const PREFIX = 'rpw_';

/**
 * The token of a worker: it is valid for the worker API of its endpoint under its own worker id, and nothing
 * else. It is computed, not stored.
 */
export class WorkerTokens {
  readonly #key: Buffer;

  constructor(masterKey: Buffer) {
    this.#key = deriveKey(masterKey, 'berth worker tokens');
  }

  tokenFor(endpointId: string, workerId: string): string {
    return PREFIX + createHmac('sha256', this.#key).update(`${endpointId}\n${workerId}`).digest('base64url');
  }

  /** Whether it has the form of a worker token; an API key has another. */
  isToken(text: string): boolean {
    return text.startsWith(PREFIX);
  }

  matches(text: string, endpointId: string, workerId: string): boolean {
    return timingSafeEqualText(this.tokenFor(endpointId, workerId), text);
  }
}
