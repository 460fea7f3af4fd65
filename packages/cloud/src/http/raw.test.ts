import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { goneSignal } from './raw.ts';

test('that a client is gone is known to who asks before, and to who asks after', async () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const before = goneSignal(response);
  assert.equal(before.aborted, false);
  const closed = once(response, 'close');
  response.destroy();
  await closed;
  assert.deepEqual([before.aborted, goneSignal(response).aborted], [true, true]);
});
