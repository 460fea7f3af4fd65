import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentOutputs } from './recent-outputs.ts';

const MEGABYTE = 1024 * 1024;

test('an output that was just read is not read again, and its memory is given back', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const recent = new RecentOutputs();
  const reads: string[] = [];
  const read = (name: string, megabytes: number) => async () => {
    reads.push(name);
    return new Uint8Array(megabytes * MEGABYTE);
  };
  for (let times = 0; times < 3; times += 1) await recent.get('a', 1, read('a', 10));
  await recent.get('a', 2, read('a again', 10));
  assert.deepEqual(reads, ['a', 'a again']);
  // Too much together: the oldest makes room. More than all of it is never kept.
  await recent.get('b', 1, read('b', 20));
  assert.equal(recent.size, 30 * MEGABYTE);
  await recent.get('c', 1, read('c', 40));
  assert.equal(recent.size, 30 * MEGABYTE);
  assert.equal(await recent.get('d', 1, async () => undefined), undefined);
  t.mock.timers.tick(1_000);
  assert.equal(recent.size, 0);
});
