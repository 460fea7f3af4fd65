import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { departure, goneSignal } from './raw.ts';

test('that a client is gone is known to who asks before, and to who asks after', async () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const before = [goneSignal(response), departure(response)];
  assert.deepEqual(
    before.map(({ aborted }) => aborted),
    [false, false],
  );
  const closed = once(response, 'close');
  response.destroy();
  await closed;
  const after = [goneSignal(response), departure(response)];
  assert.deepEqual(
    [...before, ...after].map(({ aborted }) => aborted),
    [true, true, true, true],
  );
});
