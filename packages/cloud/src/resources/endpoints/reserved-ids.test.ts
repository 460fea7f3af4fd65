import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomIds } from '../../support/ids.ts';
import { endpointId } from './reserved-ids.ts';

test('an endpoint is never called like another part of /v2', () => {
  const drawn = ['serverless', 'flash', 'docs', 'abc'];
  assert.equal(endpointId({ ...randomIds, resource: () => drawn.shift() ?? 'end' }), 'abc');
  assert.match(endpointId(randomIds), /^[a-z0-9]{14}$/);
});
