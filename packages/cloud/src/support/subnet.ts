/** Ranges of IPv4 addresses, such as 10.65.0.0/16. */

const MIN_PREFIX_BITS = 8;
const MAX_PREFIX_BITS = 24;

/** Whether the text is a range of at least 256 IPv4 addresses, written from its first address. */
export function isSubnet(text: string): boolean {
  const [, a, b, c, d, bits] = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text) ?? [];
  if (
    bits === undefined ||
    [a, b, c, d].some((byte) => Number(byte) > 255) ||
    Number(bits) < MIN_PREFIX_BITS ||
    Number(bits) > MAX_PREFIX_BITS
  )
    return false;
  return formatIpv4(subnetBounds(text).from) === text.split('/')[0];
}

/** The first and the last address, as numbers. Invalid text is a range without addresses. */
export function subnetBounds(subnet: string): { from: number; to: number } {
  const [, a, b, c, d, bits] = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\/(\d+)$/.exec(subnet) ?? [];
  if (bits === undefined) return { from: 0, to: -1 };
  const size = 2 ** (32 - Number(bits));
  const address = [a, b, c, d].reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const from = address - (address % size);
  return { from, to: from + size - 1 };
}

export function formatIpv4(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}
