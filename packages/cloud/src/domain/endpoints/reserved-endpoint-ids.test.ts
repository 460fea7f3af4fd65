import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomIds } from '../../support/ids.ts';
import { newEndpointId } from './reserved-endpoint-ids.ts';

test('an endpoint is never called like another part of /v2', () => {
  const drawn = ['serverless', 'flash', 'docs', 'abc'];
  assert.equal(newEndpointId({ ...randomIds, resource: () => drawn.shift() ?? 'end' }), 'abc');
  assert.match(newEndpointId(randomIds), /^[a-z0-9]{14}$/);
});
