import { createHmac } from 'node:crypto';
import { deriveKey, timingSafeEqualText } from '../support/crypto.ts';

/** URLs from which containers fetch a deployed folder. Only Berth can make one, for one folder. */
export class SnapshotUrls {
  readonly #key: Buffer;

  constructor(masterKey: Buffer) {
    this.#key = deriveKey(masterKey, 'berth snapshot URLs');
  }

  /** `name` is that of the image with its account, as in `local/<name>:<digest>`. */
  urlFor(server: string, name: string, digest: string): string {
    return `${server.replace(/\/$/, '')}/snapshots/${name}/${digest}/${this.#sign(name, digest)}`;
  }

  verify(name: string, digest: string, signature: string): boolean {
    return timingSafeEqualText(signature, this.#sign(name, digest));
  }

  #sign(name: string, digest: string): string {
    return createHmac('sha256', this.#key).update(`${name}:${digest}`).digest('base64url');
  }
}
