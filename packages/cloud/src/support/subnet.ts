/** Ranges of IPv4 addresses, such as 10.65.0.0/16. */

const LARGEST_BITS = 8;
const SMALLEST_BITS = 24;

/** A range of IPv4 addresses, large enough for a block of 256 of them, as it is written for people. */
export function isRange(text: string): boolean {
  const [, a, b, c, d, bits] = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text) ?? [];
  if (
    bits === undefined ||
    [a, b, c, d].some((byte) => Number(byte) > 255) ||
    Number(bits) < LARGEST_BITS ||
    Number(bits) > SMALLEST_BITS
  )
    return false;
  return addressOf(boundsOf(text).from) === text.split('/')[0];
}

/** The first and the last address, as numbers. Any other text is a range without addresses. */
export function boundsOf(subnet: string): { from: number; to: number } {
  const [, a, b, c, d, bits] = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\/(\d+)$/.exec(subnet) ?? [];
  if (bits === undefined) return { from: 0, to: -1 };
  const size = 2 ** (32 - Number(bits));
  const address = [a, b, c, d].reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const from = address - (address % size);
  return { from, to: from + size - 1 };
}

export function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}
