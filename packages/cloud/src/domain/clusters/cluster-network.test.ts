import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { freeSubnet, LOOPBACK_RANGE, rendezvousPort, memberAddress } from './cluster-network.ts';

describe('the network of a cluster', () => {
  test('is a block of its own, and none is left when all are taken', () => {
    const taken: string[] = [];
    for (let n = 0; n < 256; n += 1) {
      const subnet = freeSubnet(`cluster${n}`, LOOPBACK_RANGE, taken);
      assert.match(subnet, /^127\.65\.\d+\.0\/24$/);
      assert.ok(!taken.includes(subnet));
      taken.push(subnet);
    }
    assert.throws(() => freeSubnet('one more', LOOPBACK_RANGE, taken), {
      code: 'capacity',
      message: /clusterNetwork/,
    });
  });

  test('keeps clear of what overlaps with it, however large or small that is', () => {
    const others = [
      '10.65.0.0/17',
      '10.65.128.0/18',
      '10.65.192.7/32',
      '192.168.0.0/16',
      'fe80::/10',
      'nonsense',
    ];
    for (let n = 0; n < 50; n += 1)
      assert.ok(Number(freeSubnet(`c${n}`, '10.65.0.0/16', others).split('.')[2]) > 192);
    assert.throws(() => freeSubnet('c', '10.65.0.0/16', ['10.0.0.0/8']), { code: 'capacity' });
  });

  test('gives each member an address, and the first one a port to meet at', () => {
    assert.deepEqual(
      [0, 1, 249].map((rank) => memberAddress('10.65.3.0/24', rank)),
      ['10.65.3.2', '10.65.3.3', '10.65.3.251'],
    );
    assert.equal(rendezvousPort('10.65.3.0/24', false), 29_400);
    assert.notEqual(rendezvousPort('127.65.3.0/24', true), rendezvousPort('127.65.4.0/24', true));
  });
});
