import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RESERVED_ENDPOINT_IDS } from '../../domain/endpoints/reserved-endpoint-ids.ts';
import { parseJobUrl } from './job-url.ts';

test('an address below an endpoint is taken apart', () => {
  assert.deepEqual(parseJobUrl('/v2/e1/run'), { endpointId: 'e1', operation: 'run', rest: [], query: '' });
  assert.deepEqual(parseJobUrl('/v2/e1/status/j1?ttl=5&x=/v2/?'), {
    endpointId: 'e1',
    operation: 'status',
    rest: ['j1'],
    query: 'ttl=5&x=/v2/?',
  });
  assert.deepEqual(parseJobUrl('/v2/e1/job-done/w1/j1?gpu=a%2Fb&isStream=true'), {
    endpointId: 'e1',
    operation: 'job-done',
    rest: ['w1', 'j1'],
    query: 'gpu=a%2Fb&isStream=true',
  });
});

test('a slash at the end means nothing, nor do more of them before the endpoint', () => {
  const address = { endpointId: 'e1', operation: 'run', rest: [], query: '' };
  for (const url of ['/v2/e1/run/', '/v2//e1/run', '/v2///e1/run/'])
    assert.deepEqual(parseJobUrl(url), address, url);
  assert.deepEqual(parseJobUrl('/v2//e1/status/j1/?ttl=/'), {
    endpointId: 'e1',
    operation: 'status',
    rest: ['j1'],
    query: 'ttl=/',
  });
  assert.deepEqual(parseJobUrl('/v2/e1/status/j1//')?.rest, ['j1', '']);
  for (const url of ['/v2//', '/v2//e1', '/v2//e1/', '/v2//?x/run', '//v2/e1/run'])
    assert.equal(parseJobUrl(url), undefined, url);
});

test('anything else is left to others', () => {
  for (const url of [
    '/',
    '/v1/endpoints',
    '/v2',
    '/v2/',
    '/v2/e1',
    '/v2/e1/',
    '/v2/e1?x=/run',
    '/v2//run',
    '/v3/e1/run',
    '',
  ])
    assert.equal(parseJobUrl(url), undefined, url);
  for (const segment of RESERVED_ENDPOINT_IDS)
    for (const url of [`/v2/${segment}/run`, `/v2//${segment}/run`])
      assert.equal(parseJobUrl(url), undefined, url);
});
