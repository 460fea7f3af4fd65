import { randomBytes } from 'node:crypto';

const LETTERS = '0123456789abcdefghijklmnopqrstuvwxyz';

/** The source of ids and keys; tests use a predictable one. */
export interface Ids {
  /** A resource id: lower-case letters and digits, safe in a path and a host name. */
  resource(length?: number): string;
  /** The text of a new API key. */
  apiKey(): string;
}

/** Length of a resource id. 36^14 is 72 bits, enough to avoid collisions. */
const RESOURCE_ID_LENGTH = 14;

/** Existing tools recognise API keys by this prefix. */
const API_KEY_PREFIX = 'rpa_';
const API_KEY_LENGTH = 44;

export const randomIds: Ids = {
  resource: (length = RESOURCE_ID_LENGTH) => randomText(length),
  apiKey: () => API_KEY_PREFIX + randomText(API_KEY_LENGTH).toUpperCase(),
};

/** Uniform: bytes above the largest multiple of the alphabet's size are discarded. */
function randomText(length: number): string {
  const limit = 256 - (256 % LETTERS.length);
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < limit && text.length < length) text += LETTERS[byte % LETTERS.length];
    }
  }
  return text;
}
