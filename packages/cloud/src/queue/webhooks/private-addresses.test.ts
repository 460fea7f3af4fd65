import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { privateAddressReason } from './private-addresses.ts';

test('refuses addresses that are reachable only from inside', () => {
  const refused: Record<string, string[]> = {
    'a loopback address': [
      '127.0.0.1',
      '127.255.255.254',
      '::1',
      '0:0:0:0:0:0:0:1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '64:ff9b::127.0.0.1',
      '::ffff:0:127.0.0.1',
    ],
    'an unspecified address': ['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0'],
    'a private address': [
      '10.0.0.1',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      'fc00::1',
      'fd00:ec2::254',
      'fec0::1',
      '::ffff:10.1.2.3',
      '64:ff9b::a01:203',
    ],
    'a link-local address': [
      '169.254.169.254',
      'fe80::1',
      'fe80::1%eth0',
      'febf::1',
      '::ffff:169.254.169.254',
    ],
    'a carrier-internal address': ['100.64.0.1', '100.100.100.200', '100.127.255.255'],
    'a cloud-internal address': ['168.63.129.16'],
    'a multicast address': ['224.0.0.1', '239.255.255.255', 'ff02::1'],
    'a broadcast address': ['255.255.255.255'],
    'a tunnel address': [
      '2002:7f00:1::',
      '2002:808:808::1',
      '2001::1',
      '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    ],
    'a documentation address': ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
    'a benchmarking address': ['198.18.0.1', '198.19.255.255'],
    'a reserved address': [
      '240.0.0.1',
      '192.0.0.192',
      '192.88.99.1',
      '::127.0.0.1',
      '64:ff9b:1::1',
      '100::1',
      '4000::1',
      '2001:1ff::1',
      '5f00::1',
    ],
    'not an IP address': ['', 'localhost', '127.1', '1.2.3', '::g'],
  };
  for (const [kind, addresses] of Object.entries(refused))
    for (const address of addresses) assert.equal(privateAddressReason(address), kind, address);
});

test('allows public addresses', () => {
  for (const address of [
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '223.255.255.255',
    '168.63.129.17',
  ]) {
    assert.equal(privateAddressReason(address), undefined, address);
    assert.equal(privateAddressReason(`::ffff:${address}`), undefined, `mapped ${address}`);
    assert.equal(privateAddressReason(`64:ff9b::${address}`), undefined, `NAT64 of ${address}`);
  }
  for (const address of [
    '2606:4700:4700::1111',
    '2a00:1450:4001:81b::200e',
    '2001:200::1',
    '2001:db9::1',
    '2003::1',
    '3ffe::1',
  ])
    assert.equal(privateAddressReason(address), undefined, address);
});

const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));

test('agrees with the list of the runtime on every IPv4 address, plain and mapped', async () => {
  const list = new BlockList();
  for (const range of [
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '168.63.129.16/32',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/3',
  ]) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), 'ipv4');
  }
  const edges = fc.tuple(
    fc.constantFrom(0, 9, 10, 11, 100, 126, 127, 128, 168, 169, 172, 192, 198, 203, 223, 224, 255),
    fc.constantFrom(0, 15, 16, 17, 18, 19, 20, 31, 32, 51, 63, 64, 88, 127, 128, 168, 254, 255),
    fc.constantFrom(0, 1, 2, 99, 100, 113, 129),
    fc.nat(255),
  );
  await checkProperty(
    fc.property(fc.oneof(octets, edges), (numbers) => {
      const address = numbers.join('.');
      assert.equal(privateAddressReason(address) !== undefined, list.check(address, 'ipv4'), address);
      assert.equal(privateAddressReason(`::ffff:${address}`), privateAddressReason(address));
      const [a, b, c, d] = numbers;
      assert.equal(
        privateAddressReason(`0:0:0:0:0:FFFF:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`),
        privateAddressReason(address),
      );
    }),
    2000,
  );
});

test('agrees with the list of the runtime on every IPv6 address, however it is written', async () => {
  const inUse = new BlockList();
  inUse.addSubnet('2000::', 3, 'ipv6');
  const list = new BlockList();
  for (const [address, bits] of [
    ['2001::', 23],
    ['2001:db8::', 32],
    ['2002::', 16],
    ['3fff::', 20],
  ] as const)
    list.addSubnet(address, bits, 'ipv6');
  const group = fc.oneof(fc.nat(0xffff), fc.constant(0));
  const head = fc.oneof(
    fc.nat(0xffff),
    fc.constantFrom(0x2000, 0x2001, 0x2002, 0x3fff, 0x4000, 0xfc00, 0xfe80, 0xff02),
  );
  const second = fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0xdb8, 0x1ff, 0x200, 0xfff, 0x1000));
  await checkProperty(
    fc.property(fc.tuple(head, second, group, group, group, group, group, group), (groups) => {
      fc.pre(groups[0] > 0x64);
      const full = groups.map((value) => value.toString(16)).join(':');
      const short = new URL(`http://[${full}]/`).hostname.slice(1, -1);
      assert.equal(
        privateAddressReason(full) === undefined,
        inUse.check(full, 'ipv6') && !list.check(full, 'ipv6'),
        full,
      );
      assert.equal(privateAddressReason(short), privateAddressReason(full), short);
      assert.equal(privateAddressReason(full.toUpperCase()), privateAddressReason(full));
    }),
    2000,
  );
});
