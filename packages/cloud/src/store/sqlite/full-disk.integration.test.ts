import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, rmSync, statfsSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { newJob } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { Database } from '../database.ts';
import type { JobStore } from '../job-store.ts';
import { migrate } from '../migrations/migrate.ts';
import { openDatabase } from '../open-store.ts';
import { rows, sql } from '../sql.ts';
import type { TakenJob } from '../../domain/job-records.ts';

const NOW = 1_800_000_000_000;
const MEGABYTE = 1024 * 1024;
const RETENTION = 10;
const ENDPOINT = {
  id: 'e',
  accountId: 'a',
  executionTimeout: 0,
  jobTtl: 86_400_000,
  retention: RETENTION,
  maxRetries: 1,
};
const REQUEST = `{"input":"${'x'.repeat(1_000)}"}`;

interface SmallDisk {
  folder: string;
  /** Closes the database, which brings all of the log into it, and opens it anew. */
  open(): Promise<{ database: Database; store: JobStore }>;
  /** Something else takes all but so many bytes. */
  fill(left: number): void;
  clear(): void;
}

function smallDisk(t: TestContext, megabytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'berth-small-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder]);
  let database: Database | undefined;
  t.after(async () => {
    await database?.close();
    execFileSync('umount', [folder]);
    rmdirSync(folder);
  });
  const ballast = join(folder, 'ballast');
  return {
    folder,
    open: async () => {
      await database?.close();
      database = await openDatabase({
        database: '',
        data: folder,
        poolSize: 1,
        onError: assert.ifError,
        // The reserve gives what the database must grow by, and nothing for the log.
        onFull: (_forJobs, bytes = 0) => {
          if (bytes > 0) truncateSync(ballast, statSync(ballast).size - bytes);
          return bytes > 0;
        },
      });
      await migrate(database);
      return { database, store: database.jobs() };
    },
    fill: (left) => {
      const { bavail, bsize } = statfsSync(folder);
      writeFileSync(ballast, Buffer.alloc(bavail * bsize - left));
    },
    clear: () => rmSync(ballast),
  };
}

const take = (store: JobStore, lease: string, now: number): Promise<TakenJob[]> =>
  store.take(
    'e',
    transitions.takeRequest(() => [{ workerId: 'w', lease }], now),
  );

describe('on a small disk', { skip: process.getuid?.() !== 0 || process.platform !== 'linux' }, () => {
  test('a log that has filled it goes into the database, and work goes on', async (t) => {
    const { folder, open, fill } = smallDisk(t, 32);
    let { store } = await open();
    let now = NOW;
    /** A job comes, runs, ends and is forgotten: the database does not grow, but the log does. */
    const cycle = async (seq: number): Promise<void> => {
      now += 100_000;
      await store.submit(newJob(ENDPOINT, 'a', REQUEST, {}, seq, now));
      await take(store, `lease ${seq}`, now);
      await store.change('e', seq, (job) =>
        transitions.finish(job, { workerId: 'w' }, { output: '1', error: null }, now),
      );
      await store.deleteExpired(now + 70_000, 100);
    };
    for (let seq = 1; seq <= 50; seq += 1) await cycle(seq);
    ({ store } = await open());
    fill(MEGABYTE);
    for (let seq = 51; seq <= 1_000; seq += 1) await cycle(seq);
    // They wrote many times as much.
    assert.ok(statSync(join(folder, 'berth.db-wal')).size <= MEGABYTE);
  });

  test('the log leaves room for the database to grow', async (t) => {
    const { folder, open } = smallDisk(t, 16);
    const { store } = await open();
    for (let seq = 1; seq <= 4_000; seq += 1)
      await store.submit(newJob(ENDPOINT, 'a', REQUEST, {}, seq, NOW));
    assert.ok(statSync(join(folder, 'berth.db')).size > 4 * MEGABYTE);
  });

  test('what needs no write is read though it is full and a job runs', async (t) => {
    const { open, fill, clear } = smallDisk(t, 16);
    const { database, store } = await open();
    const submitted = newJob(ENDPOINT, 'a', REQUEST, {}, 1, NOW);
    const [, [taken]] = await Promise.all([
      store.submit(submitted, undefined, true),
      take(store, 'lease', NOW),
    ]);
    fill(0);
    const one = await database.read(function* () {
      return yield* rows<{ one: number }>(sql`select 1 as one`);
    });
    assert.equal(one[0]?.one, 1);
    const whole = { job: taken?.job, payloads: submitted.payloads };
    assert.deepEqual(await store.find('e', 1), whole);
    assert.deepEqual(await store.findAll('e', [1]), [whole]);
    assert.equal(await store.find('elsewhere', 1), undefined);
    assert.deepEqual(
      [
        await store.listChunks('e', 1, 0, 100),
        await store.workers('e', 0),
        await store.countWaiting('e', NOW, 10),
      ],
      [[], [], { waiting: 0, late: 0 }],
    );
    assert.deepEqual(await store.listRunning('e'), [taken?.job]);
    clear();
    assert.deepEqual(await store.listRunning('e'), [taken?.job]);
    assert.deepEqual(await store.find('e', 1), whole);
  });
});
