import { ruleError } from '../../support/errors.ts';
import { MAX_FILE_NAME_BYTES } from '../../support/temporary-name.ts';

/** As S3 has it, in bytes of UTF-8. */
export const MAX_OBJECT_KEY_BYTES = 1024;

/** The name of an object: where it lies below its volume's folder. A key that ends in a slash is a folder. */
export interface ObjectPath {
  names: string[];
  folder: boolean;
}

/** Takes a key apart, or says why no file can have it. Nothing that comes out of here leads out of the folder it is looked up in. */
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
  if (key.includes('\0')) return 'it has a NUL in it';
  if (!key.isWellFormed()) return 'it is no Unicode text';
  for (const name of (key.endsWith('/') ? key.slice(0, -1) : key).split('/')) {
    if (name === '') return 'a name between its slashes is empty';
    if (name === '.' || name === '..') return `"${name}" is no name`;
    if (Buffer.byteLength(name) > MAX_FILE_NAME_BYTES)
      return `a name between its slashes has more than ${MAX_FILE_NAME_BYTES} bytes`;
  }
  return undefined;
}

/** The order of S3: that of the bytes of UTF-8. Text compares by its UTF-16 units, where letters beyond the first plane come too early. */
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
