import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpointIdFromHost } from './gateway-url.ts';
import { WildcardDomain } from './wildcard-domain.ts';
import { parsePodPortHost } from './pod-port-url.ts';

test("the hosts of Berth's own addresses are neither endpoints nor pods", () => {
  const domain = new WildcardDomain('example.org', [
    'https://Berth.example.org:8484/',
    '',
    'http://berth-80.example.org',
  ]);
  for (const host of ['berth.example.org', 'BERTH.example.org:1', 'berth-80.example.org']) {
    assert.equal(domain.subdomain(host), undefined, host);
    assert.equal(endpointIdFromHost(host, domain), undefined, host);
    assert.equal(parsePodPortHost(host, '/', domain), undefined, host);
  }
  assert.equal(endpointIdFromHost('berth2.example.org', domain), 'berth2');
  assert.equal(parsePodPortHost('berth-81.example.org', '/', domain)?.port, 81);
});
