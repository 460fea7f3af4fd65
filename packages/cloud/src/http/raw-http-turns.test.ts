import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { BasicRequest } from './raw-http.ts';
import { readUtf8Body } from './raw-http.ts';

const LARGE = Buffer.alloc(1_000_000, 'x');

function requestWith(body: Buffer): BasicRequest {
  return Object.assign(Readable.from([body]), {
    headers: {},
    complete: true,
    socket: new Socket(),
  });
}

test('large bodies are joined in turns of their accounts', async () => {
  const order: string[] = [];
  const read = async (account: string): Promise<void> => {
    assert.equal((await readUtf8Body(requestWith(LARGE), 2_000_000, account)).length, LARGE.length);
    order.push(account);
  };
  await Promise.all([...Array.from({ length: 5 }, () => read('flooder')), read('other')]);
  assert.ok(order.indexOf('other') <= 2, order.join(' '));
});
