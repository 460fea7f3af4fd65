import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../testing/src/test-database.ts';
import type { Worker } from '../domain/endpoints/worker-record.ts';
import { usageRules } from '../metering/usage-rules.ts';
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
        usage: usageRules({ gpu: {}, cpu: {}, disk: {} }),
      });
    });
    after(async () => {
      await store.close();
      await database.drop();
    });

    /** Adds one that starts. */
    const add = async (id: string, endpointId = 'e'): Promise<Worker> => {
      const starting: Worker = {
        ...whole,
        id,
        endpointId,
        imageReadyAt: null,
        startedAt: null,
        readyAt: null,
        firstJobAt: null,
        endedAt: null,
      };
      await store.workers.saveWorker(starting);
      return starting;
    };

    test('come back with every field, and one that starts has no phase of its start yet', async () => {
      const starting = await add('w');
      assert.deepEqual(await store.workers.findWorker('e', 'w'), starting);
      await store.workers.saveWorker(whole);
      assert.deepEqual(await store.workers.findWorker('e', 'w'), whole);
    });

    test('end once: what is written late does not revive one', async () => {
      await add('ended');
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

    test('that were removed with their endpoint stay so, and are billed once', async () => {
      const startedAt = 1_900_000_000_000;
      const running: Worker = { ...(await add('late', 'gone')), state: 'ready', startedAt };
      await store.workers.saveWorker(running);
      await store.workers.removeWorkers('gone', startedAt + 5_000);
      await store.workers.saveWorker({ ...running, readyAt: startedAt });
      await store.workers.saveWorker({ ...running, state: 'ended', endedAt: startedAt + 7_000 });
      assert.equal(await store.workers.findWorker('gone', 'late'), undefined);
      const query = { accountId: 'a', kind: 'serverless', from: 0, to: startedAt } as const;
      const billed = await store.ledger.listIntervals({ ...query, resourceId: 'gone' });
      assert.deepEqual(
        billed.map(({ beganAt, endedAt }) => [beganAt * 1000, endedAt && endedAt * 1000]),
        [[startedAt, startedAt + 5_000]],
      );
    });
  });
}
