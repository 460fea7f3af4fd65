import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { DatabaseSync } from 'node:sqlite';
import { casesTried, seed } from '../../../../testing/src/property-testing.ts';
import { PowerCutDisk } from '../../../../testing/src/safety/power-cut-disk.ts';
import { seededRandom } from '../../../../testing/src/safety/seeded-random.ts';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import * as transitions from '../../domain/job-transitions.ts';
import { newJob } from '../../queue/job-submission.ts';
import { Sealer } from '../../support/crypto.ts';
import type { Database } from '../database.ts';
import { migrate } from '../migrations/migrate.ts';
import { createStore } from '../open-store.ts';
import { openSqlite } from './open-database.ts';
import { NOW, queueSettings } from '../queue-settings.fixture.ts';

const ENDPOINT = queueSettings();
/** So small a log goes into the database after a few dozen commits. */
const MAX_WAL_PAGES = 40;
const QUEUED_JOBS = 200;
const JOBS = 120;
const JOBS_AT_ONCE = 4;
/** Cuts while a checkpoint is made; each sync of the database is within one, and so are those around it. */
const CUTS_IN_CHECKPOINTS = 30;
const sealer = new Sealer(Buffer.alloc(32, 1));

/** What was acknowledged: the number of a job, and its result if it has ended. */
type Acknowledged = ReadonlyMap<number, string | null>;

async function assertKept(folder: string, acknowledged: Acknowledged, when: string): Promise<void> {
  const file = join(folder, 'berth.db');
  const database = openSqlite(file);
  const store = createStore(database, sealer);
  const found = new Map(
    (await store.jobs.findAll(ENDPOINT.id, [...acknowledged.keys()])).map(({ job, payloads }) => [
      job.seq,
      { status: job.status, output: payloads.output, request: payloads.request },
    ]),
  );
  for (const [seq, output] of acknowledged) {
    const job = found.get(seq);
    assert.ok(job !== undefined, `job ${seq} of ${acknowledged.size} is lost after a cut when ${when}`);
    assert.ok(job.request.includes(`"job ${seq} `), when);
    if (output !== null) assert.deepEqual([job.status, job.output], ['COMPLETED', output], when);
  }
  await store.close();
  const connection = new DatabaseSync(file, { readOnly: true });
  assert.deepEqual(
    connection
      .prepare('pragma integrity_check')
      .all()
      .map((row) => ({ ...row })),
    [{ integrity_check: 'ok' }],
    when,
  );
  connection.close();
}

describe('a power cut', { skip: process.platform !== 'linux' }, () => {
  test('loses nothing acknowledged, also while the log goes into the database', async (t) => {
    const place = await createTestDatabase('sqlite');
    const file = join(place.data, 'berth.db');
    const random = seededRandom(seed, 'power cuts');
    const acknowledged = new Map<number, string | null>();
    const told = { all: 0, inCheckpoints: 0 };
    let isObserved = false;
    let inCheckpoint = false;
    let databaseSyncs = 0;
    let failure: Error | undefined;

    const cut = async (when: string): Promise<void> => {
      const folder = join(place.data, `after-${(told.all += 1)}`);
      const until = new Map(acknowledged);
      disk.cut(folder);
      // Told at the end: the store would take it for a failure of the disk.
      await assertKept(folder, until, `${when} (seed ${seed})`).catch((error: Error) => (failure ??= error));
      rmSync(folder, { recursive: true });
      if (inCheckpoint) told.inCheckpoints += 1;
    };
    const disk: PowerCutDisk = new PowerCutDisk(random, async (synced, moment) => {
      const isDatabase = synced === file;
      if (isDatabase && moment === 'sync begins') databaseSyncs += 1;
      // The sync of the log that follows one of the database is the last of a checkpoint.
      inCheckpoint ||= isDatabase;
      if (isObserved && (inCheckpoint || random.chance(0.1)))
        await cut(`the sync of the ${isDatabase ? 'database' : 'log'}: ${moment}`);
      if (!isDatabase && moment === 'sync has ended') inCheckpoint = false;
    });
    const open = (): Database => openSqlite(file, { syncFile: disk.syncFile, maxWalPages: MAX_WAL_PAGES });
    t.after(() => place.drop());
    let database = open();
    await migrate(database);
    let store = createStore(database, sealer);
    let last = 0;
    const submit = async (): Promise<number> => {
      const seq = (last += 1);
      const input = `job ${seq} ${'x'.repeat(random.between(10, 6_000))}`;
      await store.jobs.submit(newJob(ENDPOINT, 'one', JSON.stringify({ input }), {}, seq, NOW));
      acknowledged.set(seq, null);
      return seq;
    };
    // Workers take the oldest, so most changes are to pages that the log does not have yet.
    await Promise.all(Array.from({ length: QUEUED_JOBS }, submit));
    await store.close();
    database = open();
    store = createStore(database, sealer);
    disk.settle([file, `${file}-wal`]);
    isObserved = true;
    const runJob = async (): Promise<void> => {
      const seq = await submit();
      if (random.chance(0.3)) return;
      const [taken] = await store.jobs.take(
        ENDPOINT.id,
        transitions.takeRequest(() => [{ workerId: 'w', lease: `lease ${seq}` }], NOW),
      );
      if (taken === undefined) return;
      const output = JSON.stringify(`result of ${taken.job.seq}`);
      await store.jobs.change(ENDPOINT.id, taken.job.seq, (job) =>
        transitions.finish(job, { workerId: 'w' }, { output, error: null }, NOW),
      );
      acknowledged.set(taken.job.seq, output);
    };
    while (last < QUEUED_JOBS + casesTried(JOBS) && failure === undefined)
      await Promise.all(Array.from({ length: JOBS_AT_ONCE }, runJob));

    isObserved = false;
    await store.close();
    if (failure !== undefined) throw failure;
    t.diagnostic(`${told.all} power cuts, ${told.inCheckpoints} of them in ${databaseSyncs} checkpoints`);
    assert.ok(
      told.inCheckpoints >= casesTried(CUTS_IN_CHECKPOINTS),
      `only ${told.inCheckpoints} cuts in checkpoints`,
    );
  });
});
