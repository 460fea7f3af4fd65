import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { cancelOnClose, abortOnClose } from './raw-http.ts';

test('that a client is gone is known to who asks before, and to who asks after', async () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const before = [abortOnClose(response), cancelOnClose(response)];
  assert.deepEqual(
    before.map(({ aborted }) => aborted),
    [false, false],
  );
  const closed = once(response, 'close');
  response.destroy();
  await closed;
  const after = [abortOnClose(response), cancelOnClose(response)];
  assert.deepEqual(
    [...before, ...after].map(({ aborted }) => aborted),
    [true, true, true, true],
  );
});
