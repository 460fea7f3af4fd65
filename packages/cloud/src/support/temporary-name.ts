import { createHash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';

/** The longest file name of common file systems, in bytes. */
export const MAX_FILE_NAME_BYTES = 255;

/**
 * A hidden name for a temporary file beside a file: the file's name and a mark. A name that is too long is
 * cut and gets a hash, so that no two files share one.
 */
export function temporaryName(name: string, mark: string): string {
  const fullName = `.${name}.${mark}`;
  if (Buffer.byteLength(fullName) <= MAX_FILE_NAME_BYTES) return fullName;
  const end = `-${createHash('sha256').update(name).digest('hex').slice(0, 16)}.${mark}`;
  return `.${beginningOf(name, MAX_FILE_NAME_BYTES - 1 - Buffer.byteLength(end))}${end}`;
}

/** The longest prefix of whole characters that fits into this many bytes. */
function beginningOf(text: string, bytes: number): string {
  return new StringDecoder('utf8').write(Buffer.from(text).subarray(0, bytes));
}
