import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../testing/src/test-database.ts';
import type { Worker } from '../domain/endpoints/worker-record.ts';
import { Sealer } from '../support/crypto.ts';
import { openStore } from './open-store.ts';
import type { Store } from './store.ts';

/** Every field with a value of its own. */
const whole: Worker = {
  id: 'w',
  accountId: 'a',
  endpointId: 'e',
  version: 3,
  dataCenterId: 'D',
  image: 'local/x:0a1b',
  gpuTypeId: 'GPU',
  gpuCount: 2,
  cpuFlavorId: 'cpu3c',
  vcpuCount: 8,
  containerDisk: 7,
  templateId: 't',
  state: 'leaving',
  handle: '{"a":1}',
  createdAt: 1_900_000_000_000,
  imageReadyAt: 1_900_000_000_001,
  startedAt: 1_900_000_000_002,
  readyAt: 1_900_000_000_003,
  firstJobAt: 1_900_000_000_004,
  endedAt: 1_900_000_000_005,
  exitCode: 1,
  reason: 'why',
};

for (const kind of DATABASES) {
  describe(`workers on ${kind}`, () => {
    let database: TestDatabase;
    let store: Store;
    before(async () => {
      database = await createTestDatabase(kind);
      store = await openStore({
        database: database.url,
        data: database.data,
        poolSize: 5,
        sealer: new Sealer(Buffer.alloc(32, 7)),
        onError: () => undefined,
      });
    });
    after(async () => {
      await store.close();
      await database.drop();
    });

    test('come back with every field, and one that starts has no phase of its start yet', async () => {
      await store.workers.saveWorker(whole);
      assert.deepEqual(await store.workers.findWorker('e', 'w'), whole);
      const starting: Worker = {
        ...whole,
        id: 'starting',
        imageReadyAt: null,
        startedAt: null,
        readyAt: null,
        firstJobAt: null,
        endedAt: null,
      };
      await store.workers.saveWorker(starting);
      assert.deepEqual(await store.workers.findWorker('e', 'starting'), starting);
    });

    test('end once: what is written late does not revive one', async () => {
      const ended: Worker = { ...whole, id: 'ended', state: 'ended' };
      await store.workers.saveWorker(ended);
      await store.workers.saveWorker({
        ...ended,
        state: 'ready',
        endedAt: null,
        exitCode: null,
        reason: null,
      });
      assert.deepEqual(await store.workers.findWorker('e', 'ended'), ended);
      await store.workers.saveWorker({ ...ended, endedAt: 1_900_000_009_000 });
      assert.equal((await store.workers.findWorker('e', 'ended'))?.endedAt, ended.endedAt);
    });
  });
}
