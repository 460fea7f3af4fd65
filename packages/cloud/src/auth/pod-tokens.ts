import { createHmac } from 'node:crypto';
import { deriveKey, timingSafeEqualText } from '../support/crypto.ts';

const PREFIX = 'rpp_';
const TOKEN_PATTERN = /^rpp_([a-z0-9]{1,64})_([A-Za-z0-9_-]{43})$/;

/**
 * The token of a pod: with it a pod can read, stop, restart and terminate itself, and nothing else. It is
 * computed, not stored.
 */
export class PodTokens {
  readonly #key: Buffer;

  constructor(masterKey: Buffer) {
    this.#key = deriveKey(masterKey, 'berth pod tokens');
  }

  tokenFor(podId: string): string {
    return `${PREFIX}${podId}_${createHmac('sha256', this.#key).update(podId).digest('base64url')}`;
  }

  /** The pod that a token was issued to; undefined for any other text. */
  podIdFromToken(text: string | undefined): string | undefined {
    const podId = text?.startsWith(PREFIX) === true ? TOKEN_PATTERN.exec(text)?.[1] : undefined;
    if (text === undefined || podId === undefined) return undefined;
    return timingSafeEqualText(this.tokenFor(podId), text) ? podId : undefined;
  }
}
