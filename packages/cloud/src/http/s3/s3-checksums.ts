import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** A checksum that grows with the bytes. */
export interface Checksum {
  update(bytes: Uint8Array): void;
  /** In base64. */
  digest(): string;
}

const PREFIX = 'x-amz-checksum-';
const ALGORITHMS: ReadonlyMap<string, () => Checksum> = new Map([
  [
    `${PREFIX}crc32`,
    (): Checksum => {
      let value = 0;
      return { update: (bytes) => (value = crc32(bytes, value)), digest: () => base64Of(value) };
    },
  ],
  [
    `${PREFIX}crc32c`,
    (): Checksum => {
      let value = 0xffffffff;
      return {
        update: (bytes) => (value = crc32c(bytes, value)),
        digest: () => base64Of((value ^ 0xffffffff) >>> 0),
      };
    },
  ],
  [`${PREFIX}crc64nvme`, (): Checksum => new Crc64()],
  [`${PREFIX}sha1`, (): Checksum => hashed('sha1')],
  [`${PREFIX}sha256`, (): Checksum => hashed('sha256')],
]);

export const CHECKSUM_HEADERS: readonly string[] = [...ALGORITHMS.keys()];

/** Of the header that carries it; undefined where it is not a checksum that is known. */
export function createChecksum(header: string): Checksum | undefined {
  return ALGORITHMS.get(header)?.();
}

function hashed(algorithm: string): Checksum {
  const hash = createHash(algorithm);
  return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest('base64') };
}

function base64Of(...words: number[]): string {
  const bytes = Buffer.alloc(4 * words.length);
  words.forEach((word, index) => bytes.writeUInt32BE(word >>> 0, 4 * index));
  return bytes.toString('base64');
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

  digest(): string {
    return base64Of(~this.#high, ~this.#low);
  }
}
