import assert from 'node:assert/strict';
import { readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import { Sealer } from '../../support/crypto.ts';
import { newJob } from '../../queue/job-submission.ts';
import type { JobWithPayloads } from '../../domain/job-records.ts';
import { migrate } from '../migrations/migrate.ts';
import { createStore } from '../open-store.ts';
import { openSqlite } from './open-database.ts';
import { NOW, queueSettings } from '../queue-settings.fixture.ts';

/** A disk whose syncs take as long as a test wants. */
function slowDisk() {
  const waiting: (() => void)[] = [];
  const synced = new Set<string>();
  let isSlow = false;
  return {
    syncFile: (descriptor: number, done: (error: null) => void): void => {
      synced.add(readlinkSync(`/proc/self/fd/${descriptor}`));
      if (isSlow) waiting.push(() => done(null));
      else setImmediate(() => done(null));
    },
    slowDown: () => (isSlow = true),
    waiting,
    /** The files that it was asked for. */
    synced,
    speedUp: () => {
      isSlow = false;
      for (const done of waiting.splice(0)) done();
    },
  };
}

const ENDPOINT = queueSettings();
const job = (seq: number): JobWithPayloads => newJob(ENDPOINT, 'one', '{"input":1}', {}, seq, NOW);

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

  test('the log goes into the database without keeping reads waiting, and is whole after that', async (t) => {
    const place = await createTestDatabase('sqlite');
    const disk = slowDisk();
    const file = join(place.data, 'berth.db');
    const open = (): ReturnType<typeof openSqlite> =>
      openSqlite(file, { syncFile: disk.syncFile, maxWalPages: 1_000 });
    let database = open();
    await migrate(database);
    let store = createStore(database, new Sealer(Buffer.alloc(32, 1)));
    t.after(async () => {
      disk.speedUp();
      await store.close();
      await place.drop();
    });
    const submit = (seq: number): Promise<unknown> =>
      store.jobs.submit(
        newJob(ENDPOINT, 'one', JSON.stringify({ input: 'x'.repeat(1e6) }), {}, seq, 1_800_000_000_000),
      );
    let last = 0;
    const sizeBefore = statSync(file).size;
    // Each stage of a checkpoint waits for a sync: of the log, of the database, of the log that is begun
    // anew.
    for (let stage = 0; stage < 12; stage += 1) {
      disk.slowDown();
      const submitted = submit((last += 1));
      while (disk.waiting.length === 0) await turn();
      // However far the checkpoint is, reads do not wait for the disk.
      if (last > 1) assert.equal((await store.jobs.find(ENDPOINT.id, 1))?.job.seq, 1);
      await store.ping();
      disk.waiting.shift()?.();
      for (let turns = 0; turns < 5; turns += 1) await turn();
      if (last > 1) assert.equal((await store.jobs.find(ENDPOINT.id, 1))?.job.seq, 1);
      disk.speedUp();
      await submitted;
    }
    assert.ok(statSync(file).size - sizeBefore > 4e6, 'the database has got the log');
    assert.ok(disk.synced.has(file), 'the database was synced beside the main thread');
    assert.ok(statSync(`${file}-wal`).size < 12e6, 'the log was begun anew');
    await store.close();
    database = open();
    store = createStore(database, new Sealer(Buffer.alloc(32, 1)));
    for (let seq = 1; seq <= last; seq += 1)
      assert.equal((await store.jobs.find(ENDPOINT.id, seq))?.job.seq, seq);
  });

  test('a database whose sync failed is not written any more, and nothing is lost', async (t) => {
    const place = await createTestDatabase('sqlite');
    const file = join(place.data, 'berth.db');
    let failing = 0;
    const database = openSqlite(file, {
      maxWalPages: 1_000,
      // Only the syncs of the database fail, not those of its log.
      syncFile: (descriptor, done) => {
        const isLog = readlinkSync(`/proc/self/fd/${descriptor}`).endsWith('-wal');
        if (!isLog) failing += 1;
        setImmediate(() => done(isLog ? null : new Error('EIO')));
      },
    });
    await migrate(database);
    let store = createStore(database, new Sealer(Buffer.alloc(32, 1)));
    const told: number[] = [];
    await assert.rejects(
      async () => {
        for (let seq = 1; seq < 30; seq += 1) {
          await store.jobs.submit(
            newJob(ENDPOINT, 'one', JSON.stringify({ input: 'x'.repeat(1e6) }), {}, seq, 1_800_000_000_000),
          );
          told.push(seq);
        }
      },
      { code: 'unavailable', message: /until Berth is restarted/ },
    );
    assert.ok(failing > 0);
    await assert.rejects(store.ping(), { code: 'unavailable' });
    assert.equal((await store.jobs.find(ENDPOINT.id, 1))?.job.seq, 1);
    await store.close().catch(() => undefined);
    store = createStore(openSqlite(file), new Sealer(Buffer.alloc(32, 1)));
    t.after(async () => {
      await store.close();
      await place.drop();
    });
    for (const seq of told) assert.equal((await store.jobs.find(ENDPOINT.id, seq))?.job.seq, seq);
  });
});
