import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** A checksum that grows with the bytes. */
export interface Checksum {
  update(bytes: Uint8Array): void;
  digest(): Buffer;
}

const ALGORITHMS = {
  md5: (): Checksum => createHash('md5'),
  sha1: (): Checksum => createHash('sha1'),
  sha256: (): Checksum => createHash('sha256'),
  crc32: (): Checksum => {
    let value = 0;
    return { update: (bytes) => (value = crc32(bytes, value)), digest: () => bytesOf(value) };
  },
  crc32c: (): Checksum => {
    let value = 0xffffffff;
    return {
      update: (bytes) => (value = crc32c(bytes, value)),
      digest: () => bytesOf((value ^ 0xffffffff) >>> 0),
    };
  },
  crc64nvme: (): Checksum => new Crc64(),
};

export type ChecksumName = keyof typeof ALGORITHMS;

export function createChecksum(name: ChecksumName): Checksum {
  return ALGORITHMS[name]();
}

function bytesOf(...words: number[]): Buffer {
  const bytes = Buffer.alloc(4 * words.length);
  words.forEach((word, index) => bytes.writeUInt32BE(word >>> 0, 4 * index));
  return bytes;
}

const TABLE_32C = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  return value;
});

function crc32c(bytes: Uint8Array, before: number): number {
  let value = before;
  for (let at = 0; at < bytes.length; at += 1)
    value = (TABLE_32C[(value ^ (bytes[at] as number)) & 0xff] as number) ^ (value >>> 8);
  return value >>> 0;
}

/** Two halves of 32 bits each: numbers of 64 bits are slow. */
const [TABLE_64_HIGH, TABLE_64_LOW] = table64(0x9a6c9329, 0xac4bc9b5);

function table64(polynomialHigh: number, polynomialLow: number): [Uint32Array, Uint32Array] {
  const [highs, lows] = [new Uint32Array(256), new Uint32Array(256)];
  for (let byte = 0; byte < 256; byte += 1) {
    let [high, low] = [0, byte];
    for (let bit = 0; bit < 8; bit += 1) {
      const odd = low & 1;
      low = ((low >>> 1) | (high << 31)) >>> 0;
      high >>>= 1;
      if (odd === 1) [high, low] = [high ^ polynomialHigh, low ^ polynomialLow];
    }
    highs[byte] = high;
    lows[byte] = low;
  }
  return [highs, lows];
}

class Crc64 implements Checksum {
  #high = 0xffffffff;
  #low = 0xffffffff;

  update(bytes: Uint8Array): void {
    let [high, low] = [this.#high, this.#low];
    for (let at = 0; at < bytes.length; at += 1) {
      const index = (low ^ (bytes[at] as number)) & 0xff;
      low = ((low >>> 8) | (high << 24)) ^ (TABLE_64_LOW[index] as number);
      high = (high >>> 8) ^ (TABLE_64_HIGH[index] as number);
    }
    [this.#high, this.#low] = [high >>> 0, low >>> 0];
  }

  digest(): Buffer {
    return bytesOf(~this.#high, ~this.#low);
  }
}
