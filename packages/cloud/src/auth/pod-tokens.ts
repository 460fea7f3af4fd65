import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

const PREFIX = 'rpp_';
const TOKEN_PATTERN = /^rpp_([a-z0-9]{1,64})_([A-Za-z0-9_-]{43})$/;

/** A pod's own key: with it the pod can look at itself, stop, restart and terminate itself, and nothing else. It is computed, not stored. */
export class PodTokens {
  readonly #key: Buffer;

  constructor(masterKey: Buffer) {
    this.#key = Buffer.from(hkdfSync('sha256', masterKey, '', 'berth pod tokens', 32));
  }

  tokenFor(podId: string): string {
    return `${PREFIX}${podId}_${createHmac('sha256', this.#key).update(podId).digest('base64url')}`;
  }

  /** The pod whose token this is; undefined where it is none of ours. */
  podIdFromToken(text: string | undefined): string | undefined {
    const podId = text?.startsWith(PREFIX) === true ? TOKEN_PATTERN.exec(text)?.[1] : undefined;
    if (text === undefined || podId === undefined) return undefined;
    const [wanted, given] = [Buffer.from(this.tokenFor(podId)), Buffer.from(text)];
    return wanted.length === given.length && timingSafeEqual(wanted, given) ? podId : undefined;
  }
}
