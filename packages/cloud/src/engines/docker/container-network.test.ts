import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerUrl, firstAddress } from './container-network.ts';

test('loopback addresses are replaced by the host name that containers use', () => {
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '127.1.2.3'])
    assert.equal(containerUrl(`http://${host}:8484`, 'inside'), 'http://inside:8484');
  assert.equal(containerUrl('http://127.0.0.1:8484/', 'inside'), 'http://inside:8484/');
  assert.equal(containerUrl('http://localhost:1/a?b=c', 'inside'), 'http://inside:1/a?b=c');
  for (const url of ['https://berth.example', 'http://10.0.0.1:80/x'])
    assert.equal(containerUrl(url, 'inside'), url);
});

test('of a network without a named gateway, this machine has the first address', () => {
  assert.equal(firstAddress('172.17.0.0/16'), '172.17.0.1');
  assert.equal(firstAddress('10.80.180.0/22'), '10.80.180.1');
  assert.equal(firstAddress('fd00:1::/64'), 'fd00:1::1');
});
