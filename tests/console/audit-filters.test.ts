import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AUDITED_ACTIONS, AUDITED_RESOURCES } from '../../packages/cloud/src/domain/audit.ts';
import { ACTIONS, RESOURCES } from '../../packages/console/src/pages/audit-words.ts';

// The console is a client and imports nothing of the server, so it has lists of its own.
test('the filters of the audit page offer all that is recorded', () => {
  assert.deepEqual(ACTIONS, [...AUDITED_ACTIONS]);
  assert.deepEqual(RESOURCES, [...AUDITED_RESOURCES]);
});
