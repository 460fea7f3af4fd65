import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Whether the text is a range of IPv4 or IPv6 addresses, such as 10.0.0.0/8. */
export function isAddressRange(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  if (rest.length > 0 || !/^\d{1,3}$/.test(bits)) return false;
  return (isIPv4(address) && Number(bits) <= 32) || (isIPv6(address) && Number(bits) <= 128);
}

/** Ranges of IP addresses of either family. */
export class AddressRanges {
  readonly #list = new BlockList();

  constructor(ranges: readonly string[] = []) {
    for (const range of ranges) this.add(range);
  }

  add(range: string): void {
    const [address = '', bits = ''] = range.split('/');
    this.#list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4');
  }

  /** An IPv4 address may also be written as the IPv6 address that stands for it. */
  includes(address: string): boolean {
    const plain = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
    if (isIPv4(plain)) return this.#list.check(plain, 'ipv4');
    return isIPv6(plain) && this.#list.check(plain, 'ipv6');
  }
}
