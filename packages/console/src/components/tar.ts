const BLOCK = 512;
const MAX_NAME_BYTES = 100;
/** Eleven octal digits. */
const MAX_PLAIN_SIZE = 8 ** 11 - 1;

/**
 * A tar archive of files, as the server unpacks it into a pod. The content is not read here: a browser sends
 * it from the disk.
 */
export function tarOf(files: readonly File[]): Blob {
  const parts = files.flatMap((file) => [...headersOf(file), file, padding(file.size)]);
  // The end of an archive: two empty blocks.
  return new Blob([...parts, new Uint8Array(2 * BLOCK)], { type: 'application/x-tar' });
}

/** A long name and a large size stand in a header of their own (pax). */
function headersOf({ name, size, lastModified }: File): BlobPart[] {
  const modified = Math.floor(lastModified / 1000);
  const bytes = new TextEncoder().encode(name);
  if (bytes.length <= MAX_NAME_BYTES && size <= MAX_PLAIN_SIZE) return [header(bytes, size, '0', modified)];
  const records = new TextEncoder().encode(paxRecord('path', name) + paxRecord('size', String(size)));
  return [
    header(new TextEncoder().encode('pax'), records.length, 'x', modified),
    records,
    padding(records.length),
    header(bytes.slice(0, MAX_NAME_BYTES), Math.min(size, MAX_PLAIN_SIZE), '0', modified),
  ];
}

function header(name: Uint8Array, size: number, type: '0' | 'x', modified: number): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK);
  const write = (text: string, at: number): void => block.set(new TextEncoder().encode(text), at);
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');
  block.set(name, 0);
  write(octal(0o644, 7), 100);
  write(octal(0, 7), 108);
  write(octal(0, 7), 116);
  write(octal(size, 11), 124);
  write(octal(modified, 11), 136);
  // The sum counts its own field as spaces.
  write(' '.repeat(8), 148);
  write(type, 156);
  write('ustar\u000000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  write(`${octal(sum, 6)}\0 `, 148);
  return block;
}

/** `LENGTH key=value\n`, where the length counts itself. */
function paxRecord(key: string, value: string): string {
  const rest = new TextEncoder().encode(` ${key}=${value}\n`).length;
  let length = rest + String(rest).length;
  if (String(length).length > String(rest).length) length += 1;
  return `${length} ${key}=${value}\n`;
}

function padding(size: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}
