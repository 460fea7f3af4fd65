import { createHash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';

/** What file systems take for one name, in bytes. */
export const MAX_FILE_NAME_BYTES = 255;

/** A hidden name for what lies beside a file until it is whole: the file's own and a mark. Of a name that is too long for that, the beginning stands with a hash, so that no two share one. */
export function temporaryName(name: string, mark: string): string {
  const whole = `.${name}.${mark}`;
  if (Buffer.byteLength(whole) <= MAX_FILE_NAME_BYTES) return whole;
  const end = `-${createHash('sha256').update(name).digest('hex').slice(0, 16)}.${mark}`;
  return `.${beginningOf(name, MAX_FILE_NAME_BYTES - 1 - Buffer.byteLength(end))}${end}`;
}

/** As many whole characters as this many bytes hold. */
function beginningOf(text: string, bytes: number): string {
  return new StringDecoder('utf8').write(Buffer.from(text).subarray(0, bytes));
}
