import { ruleError } from '../../support/errors.ts';
import { MAX_FILE_NAME_BYTES } from '../../support/temporary-name.ts';

/** As in S3: the limit counts bytes of UTF-8. */
export const MAX_OBJECT_KEY_BYTES = 1024;

/** The path of an object below its volume's directory. A key that ends in a slash is a folder. */
export interface ObjectPath {
  names: string[];
  folder: boolean;
}

/**
 * Splits a key into path names, or throws if it cannot be a path. The result never leads out of the volume's
 * directory.
 */
export function objectPath(key: string): ObjectPath {
  const problem = objectKeyProblem(key);
  if (problem !== undefined)
    throw ruleError(
      `the key ${JSON.stringify(key.slice(0, 80))} cannot be the name of a file in a volume: ${problem}`,
    );
  const folder = key.endsWith('/');
  return { names: (folder ? key.slice(0, -1) : key).split('/'), folder };
}

export function objectKeyProblem(key: string): string | undefined {
  if (Buffer.byteLength(key) > MAX_OBJECT_KEY_BYTES) return `it has more than ${MAX_OBJECT_KEY_BYTES} bytes`;
  if (key.includes('\0')) return 'it contains a NUL character';
  if (!key.isWellFormed()) return 'it is not valid Unicode';
  for (const name of (key.endsWith('/') ? key.slice(0, -1) : key).split('/')) {
    if (name === '') return 'a name between its slashes is empty';
    if (name === '.' || name === '..') return `"${name}" is not a valid file name`;
    if (Buffer.byteLength(name) > MAX_FILE_NAME_BYTES)
      return `a name between its slashes has more than ${MAX_FILE_NAME_BYTES} bytes`;
  }
  return undefined;
}

/**
 * Compares keys by their UTF-8 bytes, as S3 does. String comparison uses UTF-16 units, which order characters
 * beyond the first plane differently.
 */
export function compareObjectKeys(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const [left, right] = [one.charCodeAt(at), other.charCodeAt(at)];
    if (left !== right) return utf8Order(left) - utf8Order(right);
  }
  return one.length - other.length;
}

function utf8Order(unit: number): number {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
