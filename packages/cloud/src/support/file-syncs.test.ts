import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { syncInTurn } from './file-syncs.ts';

test('two files are synced at a time, in order, and a failure does not block the others', async () => {
  const begun: number[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  const syncs = Array.from({ length: 5 }, (_, index) =>
    syncInTurn({
      sync: () => {
        begun.push(index);
        const end = Promise.withResolvers<void>();
        ends[index] = end;
        return end.promise;
      },
    }),
  );
  await turn();
  assert.deepEqual(begun, [0, 1]);
  ends[1]?.reject(new Error('EIO'));
  await assert.rejects(syncs[1] as Promise<void>, /EIO/);
  await turn();
  assert.deepEqual(begun, [0, 1, 2]);
  ends[0]?.resolve();
  ends[2]?.resolve();
  await turn();
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
  ends[3]?.resolve();
  ends[4]?.resolve();
  await Promise.all([syncs[0], syncs[2], syncs[3], syncs[4]]);
  await syncInTurn({ sync: async () => undefined });
});
