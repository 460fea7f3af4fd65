import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostEndpoint } from './address.ts';
import { Domain } from './domain.ts';
import { podHostAddress } from './pod-address.ts';

test("the hosts of Berth's own addresses are neither endpoints nor pods", () => {
  const domain = new Domain('example.org', [
    'https://Berth.example.org:8484/',
    '',
    'http://berth-80.example.org',
  ]);
  for (const host of ['berth.example.org', 'BERTH.example.org:1', 'berth-80.example.org']) {
    assert.equal(domain.label(host), undefined, host);
    assert.equal(hostEndpoint(host, domain), undefined, host);
    assert.equal(podHostAddress(host, '/', domain), undefined, host);
  }
  assert.equal(hostEndpoint('berth2.example.org', domain), 'berth2');
  assert.equal(podHostAddress('berth-81.example.org', '/', domain)?.port, 81);
});
