import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { BerthError } from './errors.ts';

/** AES-256-GCM: a 96-bit nonce, a 128-bit tag. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FORMAT = 'v1.';

/**
 * Keeps secret values, registry passwords and environment values unreadable on disk.
 * `context` names the row that a value belongs to; a value moved to another row does not open.
 */
export class Sealer {
  readonly #key: KeyObject;

  constructor(masterKey: Buffer) {
    this.#key = createSecretKey(deriveKey(masterKey, 'berth sealed values'));
  }

  seal(plain: string, context: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce);
    cipher.setAAD(Buffer.from(context));
    const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
    return FORMAT + Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64');
  }

  open(sealed: string, context: string): string {
    const bytes = Buffer.from(sealed.slice(FORMAT.length), 'base64');
    try {
      // Without an explicit length, a truncated tag would be accepted.
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(context));
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([
        decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)),
        decipher.final(),
      ]).toString('utf8');
    } catch (cause) {
      throw new BerthError(
        'internal',
        `a stored value of ${context} cannot be decrypted with this master key; use the one that encrypted it`,
        { cause },
      );
    }
  }
}

/** A 256-bit key for one purpose. Keys for different purposes are independent of each other. */
export function deriveKey(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', purpose, 32));
}

/** Compares in constant time: the time does not show where the texts differ. */
export function timingSafeEqualText(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** API keys are long random text, so one fast hash is enough: they cannot be guessed. */
export function hashApiKey(key: string): string {
  return createHash('sha256').update('berth api key\n').update(key).digest('hex');
}

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
