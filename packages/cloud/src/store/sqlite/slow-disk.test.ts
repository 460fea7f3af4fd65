import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import { Sealer } from '../../support/crypto.ts';
import { newJob } from '../../queue/job-submission.ts';
import type { JobWithPayloads } from '../../domain/job-records.ts';
import { migrate } from '../migrations/migrate.ts';
import { createStore } from '../open-store.ts';
import { openSqlite } from './open-database.ts';

/** A disk whose syncs take as long as a test wants. */
function slowDisk() {
  const waiting: (() => void)[] = [];
  let isSlow = false;
  return {
    syncFile: (_descriptor: number, done: (error: null) => void): void => {
      if (isSlow) waiting.push(() => done(null));
      else setImmediate(() => done(null));
    },
    slowDown: () => (isSlow = true),
    waiting,
    speedUp: () => {
      isSlow = false;
      for (const done of waiting.splice(0)) done();
    },
  };
}

const ENDPOINT = {
  id: 'e',
  accountId: 'one',
  executionTimeout: 600_000,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
};

const job = (seq: number): JobWithPayloads =>
  newJob(ENDPOINT, 'one', '{"input":1}', {}, seq, 1_800_000_000_000);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('while a sync of the disk takes long', () => {
  test('what is on the disk is read at once, and what is on its way there when it has arrived', async (t) => {
    const place = await createTestDatabase('sqlite');
    const disk = slowDisk();
    const database = openSqlite(join(place.data, 'berth.db'), { syncFile: disk.syncFile });
    await migrate(database);
    const store = createStore(database, new Sealer(Buffer.alloc(32, 1)));
    t.after(async () => {
      disk.speedUp();
      await store.close();
      await place.drop();
    });
    const endpointId = ENDPOINT.id;
    await store.jobs.submit(job(1));
    await store.jobs.submit(job(2));
    disk.slowDown();

    const told: string[] = [];
    const note = <T>(name: string, work: Promise<T>): Promise<T> => work.finally(() => void told.push(name));
    const submitted = note('submit', store.jobs.submit(job(3)));
    await turn();
    await turn();
    assert.equal(disk.waiting.length, 1);
    const ownRead = note('read of what is written', store.jobs.find(endpointId, 3));
    const behind = note('submit behind it', store.jobs.submit(job(4)));

    // Neither of them waits, however long the sync takes.
    assert.equal((await store.jobs.find(endpointId, 1))?.job.seq, 1);
    assert.equal((await store.jobs.findAll(endpointId, [1, 2])).length, 2);
    await store.jobs.counts(endpointId);
    await store.ping();
    assert.deepEqual(await store.keys.findByHash('none'), undefined);
    assert.deepEqual(told, []);

    disk.speedUp();
    await Promise.all([submitted, ownRead, behind]);
    assert.equal((await ownRead)?.job.seq, 3);
    assert.deepEqual([...told].sort(), ['read of what is written', 'submit', 'submit behind it']);
  });
});
