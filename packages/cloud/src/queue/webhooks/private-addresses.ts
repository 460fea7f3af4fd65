import { isIPv4, isIPv6 } from 'node:net';

/**
 * Which addresses a webhook must not reach. The submitter of a job chooses the receiver, and the request
 * leaves from inside the operator's network: addresses that are reachable only from there must stay so. IPv4
 * lists what is not public; IPv6 lists what is, because most of it is not in use yet.
 */
interface Range {
  prefix: number[];
  bits: number;
  kind: string;
}

const PRIVATE_IPV4: readonly Range[] = [
  v4('0.0.0.0/8', 'an unspecified address'),
  v4('10.0.0.0/8', 'a private address'),
  v4('100.64.0.0/10', 'a carrier-internal address'),
  v4('127.0.0.0/8', 'a loopback address'),
  // The Azure host that serves its machines, metadata included, on a public address.
  v4('168.63.129.16/32', 'a cloud-internal address'),
  v4('169.254.0.0/16', 'a link-local address'),
  v4('172.16.0.0/12', 'a private address'),
  v4('192.0.0.0/24', 'a reserved address'),
  v4('192.0.2.0/24', 'a documentation address'),
  v4('192.88.99.0/24', 'a reserved address'),
  v4('192.168.0.0/16', 'a private address'),
  v4('198.18.0.0/15', 'a benchmarking address'),
  v4('198.51.100.0/24', 'a documentation address'),
  v4('203.0.113.0/24', 'a documentation address'),
  v4('224.0.0.0/4', 'a multicast address'),
  v4('255.255.255.255/32', 'a broadcast address'),
  v4('240.0.0.0/4', 'a reserved address'),
];

const PUBLIC_IPV6 = v6('2000::/3', '');

const PRIVATE_IPV6: readonly Range[] = [
  v6('::/128', 'an unspecified address'),
  v6('::1/128', 'a loopback address'),
  v6('fc00::/7', 'a private address'),
  v6('fe80::/10', 'a link-local address'),
  v6('fec0::/10', 'a private address'),
  v6('ff00::/8', 'a multicast address'),
  // Tunnels lead to IPv4 addresses that are not checked; they are not in use today.
  v6('2001::/32', 'a tunnel address'),
  v6('2002::/16', 'a tunnel address'),
  v6('2001::/23', 'a reserved address'),
  v6('2001:db8::/32', 'a documentation address'),
  v6('3fff::/20', 'a documentation address'),
];

/** IPv6 addresses whose last 32 bits are the IPv4 address that is reached: mapped, translated, and NAT64. */
const EMBEDDED_IPV4: readonly Range[] = [
  v6('::ffff:0:0/96', ''),
  v6('::ffff:0:0:0/96', ''),
  v6('64:ff9b::/96', ''),
];

/** What makes an address private, in words that follow "is"; undefined for a public one. */
export function privateAddressReason(address: string): string | undefined {
  if (isIPv4(address)) return kindOfIpv4(bytesOfIpv4(address));
  if (!isIPv6(address)) return 'not an IP address';
  const bytes = bytesOfIpv6(address);
  if (EMBEDDED_IPV4.some((range) => isIn(bytes, range))) return kindOfIpv4(bytes.slice(12));
  const found = PRIVATE_IPV6.find((range) => isIn(bytes, range));
  return found?.kind ?? (isIn(bytes, PUBLIC_IPV6) ? undefined : 'a reserved address');
}

function kindOfIpv4(bytes: number[]): string | undefined {
  return PRIVATE_IPV4.find((range) => isIn(bytes, range))?.kind;
}

function isIn(bytes: number[], { prefix, bits }: Range): boolean {
  const whole = bits >> 3;
  for (let index = 0; index < whole; index += 1) if (bytes[index] !== prefix[index]) return false;
  const rest = bits & 7;
  return rest === 0 || (bytes[whole] ?? 0) >> (8 - rest) === (prefix[whole] ?? 0) >> (8 - rest);
}

function v4(range: string, kind: string): Range {
  const [address = '', bits] = range.split('/');
  return { prefix: bytesOfIpv4(address), bits: Number(bits), kind };
}

function v6(range: string, kind: string): Range {
  const [address = '', bits] = range.split('/');
  return { prefix: bytesOfIpv6(address), bits: Number(bits), kind };
}

function bytesOfIpv4(address: string): number[] {
  return address.split('.').map(Number);
}

/** The bytes of a valid address; a zone such as %eth0 is ignored. */
function bytesOfIpv6(address: string): number[] {
  const [plain = ''] = address.split('%');
  const [head = '', tail] = plain.split('::');
  const before = groupsOf(head);
  const after = tail === undefined ? [] : groupsOf(tail);
  return [...before, ...Array<number>(16 - before.length - after.length).fill(0), ...after];
}

/** The bytes of groups between colons, the last of which may be written as IPv4. */
function groupsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return bytesOfIpv4(group);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
