import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../packages/cloud/src/support/clock.ts';
import { seqFromJobId } from '../packages/cloud/src/domain/job-ids.ts';
import { newJob } from '../packages/cloud/src/queue/job-submission.ts';
import * as transitions from '../packages/cloud/src/domain/job-transitions.ts';
import { sampleEndpoint } from '../packages/cloud/src/resources/endpoints/endpoint.fixture.ts';
import type { Database } from '../packages/cloud/src/store/database.ts';
import { isPastRetention, type TakenJob } from '../packages/cloud/src/domain/job-records.ts';
import { migrate } from '../packages/cloud/src/store/migrations/migrate.ts';
import { openDatabase } from '../packages/cloud/src/store/open-store.ts';
import type { JobStore } from '../packages/cloud/src/store/job-store.ts';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import type { SeededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { callHttp } from '../packages/testing/src/safety/http-call.ts';
import { assertAllowedTransition, finalVersion } from '../packages/testing/src/safety/transition-rules.ts';
import { startInProcessServer } from '../packages/testing/src/safety/in-process-server.ts';
import type { InProcessServer } from '../packages/testing/src/safety/in-process-server.ts';
import { recordingJobStore } from '../packages/testing/src/safety/recording-job-store.ts';
import type { JobTransition } from '../packages/testing/src/safety/recording-job-store.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import { seed } from '../packages/testing/src/property-testing.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';

/** Steps that are begun together. */
const BURSTS = repeats({ usually: 100, long: 500 });
const BURST = { least: 4, most: 16 };
/** Steps choose among the latest jobs, so that they meet. */
const HOT = 8;
/** The more wait, the longer a take looks, and the more can happen meanwhile. */
const WAITING = 500;
const TAKES = repeats({ usually: 10, long: 40 });
const WORKERS = ['w1', 'w2', 'w3'];

for (const kind of DATABASES) {
  const servers = kind === 'sqlite' ? 1 : 2;
  test(`cancel, retry, purge, expiry and results at once keep the rules, on ${kind}, servers: ${servers}`, {
    timeout: 180_000,
  }, async (t) => {
    const chance = seededRandom(seed, `races ${kind}`);
    const clock = new ManualClock(Date.now());
    const moves: JobTransition[] = [];
    const closing = closeAfterTest(t);
    const database = await createTestDatabase(kind);
    closing(() => database.drop());
    const sites: InProcessServer[] = [];
    closing(() => Promise.all(sites.map((site) => site.close())));
    for (let index = 0; index < servers; index += 1) {
      sites.push(
        await startInProcessServer({
          database,
          clock,
          runSweeper: false,
          endpoint: { maxRetries: 2 },
          wrapJobStore: (store) => recordingJobStore(store, (move) => void moves.push(move)),
        }),
      );
    }
    const run: Run = { chance, clock, sites, jobs: [], taken: [], purged: 0 };
    let steps = 0;
    for (let burst = 0; burst < BURSTS; burst += 1) {
      const together = chance.between(BURST.least, BURST.most);
      steps += together;
      const refused = (await Promise.allSettled(Array.from({ length: together }, () => step(run)))).find(
        ({ status }) => status === 'rejected',
      );
      if (refused?.status === 'rejected') throw refused.reason;
      if (chance.chance(0.2)) clock.advance(chance.between(0, 12_000));
      if (burst % 25 > 0) continue;
      await waitUntilPasses(() => compareCounts(sites, moves));
    }
    await waitUntilPasses(() => compareCounts(sites, moves));

    moves.forEach(assertAllowedTransition);
    const rows = Map.groupBy(moves, ({ after }) => after.id);
    let purged = 0;
    for (const [id, row] of rows) {
      const end = finalVersion(row);
      const found = await sites[0]?.queue.find('safety', seqFromJobId(id) ?? 0);
      // Where a job was purged, another server may give its number away once more, in the same millisecond.
      if (found?.job.id === id) assert.deepEqual(found.job, end);
      else if (end !== undefined && !isPastRetention(end, clock.now())) {
        assert.equal(end.status, 'IN_QUEUE', `a purge took ${JSON.stringify(end)}`);
        purged += 1;
      }
    }
    assert.equal(run.purged, purged);
    process.stdout.write(
      `${kind}: ${steps} steps, ${rows.size} jobs, ${moves.length} moves, ${purged} purged: ` +
        `${JSON.stringify(tally(moves))}\n`,
    );
  });
}

test('a take that meets other changes takes each job as it is, and undoes none of them', {
  timeout: 60_000,
}, async (t) => {
  const closing = closeAfterTest(t);
  const chance = seededRandom(seed, 'take');
  const moves: JobTransition[] = [];
  const database = await createTestDatabase('postgres');
  closing(() => database.drop());
  const servers = await Promise.all(
    [1, 2].map(() =>
      openDatabase({ database: database.url, data: database.data, poolSize: 5, onError: () => undefined }),
    ),
  );
  closing(() => Promise.all(servers.map((server) => server.close())));
  const [pendingTake, changer] = servers.map((server) =>
    recordingJobStore(server.jobs(), (move) => void moves.push(move)),
  ) as [JobStore, JobStore];
  await migrate(servers[0] as Database);
  const endpoint = { ...sampleEndpoint, id: 'e' };
  await Promise.all(
    Array.from({ length: WAITING }, (_, index) =>
      pendingTake.submit(newJob(endpoint, 'a', '{"input":1}', {}, index + 1, 1_000)),
    ),
  );
  let taking = true;
  let count = 0;
  const take = async (): Promise<void> => {
    for (let round = 0; round < TAKES; round += 1) {
      const taken = await pendingTake.take(
        'e',
        transitions.takeRequest(
          () => Array.from({ length: WAITING }, () => ({ workerId: 'w', lease: `lease ${++count}` })),
          2_000,
        ),
      );
      await Promise.all(
        taken.map(({ job }) =>
          pendingTake.change('e', job.seq, (current) =>
            transitions.returnToQueue(current, { workerId: 'w', lease: job.lease ?? '' }, 3_000),
          ),
        ),
      );
    }
    taking = false;
  };
  const change = async (): Promise<void> => {
    while (taking)
      await Promise.all(
        Array.from({ length: 20 }, () =>
          changer.change('e', chance.between(1, WAITING), (job) =>
            transitions.setTimeToLive(job, 1_000_000 + ++count, 4_000),
          ),
        ),
      );
  };
  await Promise.all([take(), change()]);
  for (const row of Map.groupBy(moves, ({ after }) => after.seq).values()) finalVersion(row);
});

interface Run {
  chance: SeededRandom;
  clock: ManualClock;
  sites: InProcessServer[];
  /** Newest last. */
  jobs: number[];
  /** What workers got, newest last: also what they hold no longer. */
  taken: TakenJob[];
  purged: number;
}

/** One thing that somebody does, to a job that others do things to. */
async function step(run: Run): Promise<void> {
  const { chance, clock, sites } = run;
  const site = chance.pick(sites) as InProcessServer;
  const { queue, endpoint } = site;
  const job = chance.pick(run.jobs.slice(-HOT));
  const got = chance.pick(run.taken.slice(-HOT));
  const worker = chance.pick(WORKERS) ?? '';
  const dice = chance.between(0, 99);
  if (dice < 20 || job === undefined) {
    const made = await queue.submit({
      endpoint,
      accountId: endpoint.accountId,
      request: '{"input":1}',
      options: {
        ttl: chance.between(10_000, 90_000),
        retention: chance.between(0, 60_000),
        ...(chance.chance(0.5) && { executionTimeout: 5_000 }),
        lowPriority: chance.chance(0.2),
      },
    });
    run.jobs.push(made.seq);
  } else if (dice < 45) {
    run.taken.push(
      ...(await queue.take(
        endpoint.id,
        worker,
        chance.between(1, 3),
        chance.between(5, 60),
        chance.chance(0.1) ? AbortSignal.timeout(1) : new AbortController().signal,
      )),
    );
  } else if (dice < 53) await queue.cancel(endpoint.id, job);
  else if (dice < 63) await queue.retry(endpoint.id, job);
  else if (dice < 65) {
    const removed = await queue.purge(endpoint.id);
    run.purged += removed;
  } else if (dice < 68) await queue.setTimeToLive(endpoint.id, job, chance.between(10_000, 60_000));
  else if (dice < 75) await queue.reaper.sweepDue();
  else if (dice < 77) await queue.reaper.workerGone(endpoint.id, worker, 'gone');
  else if (dice < 79) clock.advance(chance.between(1, 3_000));
  else if (got !== undefined) {
    // By the worker and its lease, by the worker alone as the public protocol does, or by one that never held
    // it.
    const holder = chance.pick([
      { workerId: got.job.workerId ?? '', lease: got.job.lease ?? undefined },
      { workerId: got.job.workerId ?? '' },
      { workerId: worker },
    ]) ?? { workerId: worker };
    const { seq } = got.job;
    if (dice < 91)
      await queue.finish(
        endpoint.id,
        seq,
        holder,
        chance.chance(0.5) ? { output: '1', error: null } : { output: null, error: '"no"' },
      );
    else if (dice < 94) await queue.progress(endpoint.id, seq, holder, '"half"');
    else if (dice < 97) await queue.streams.append(endpoint.id, seq, holder, ['{"output":1}']);
    else await queue.returnTaken(endpoint.id, [got]);
  }
}

/**
 * What `/health` counts is what `/requests` lists, and what has happened. Jobs whose taker left are requeued a moment
 * after the answers: then this passes only later.
 */
async function compareCounts(
  sites: readonly InProcessServer[],
  moves: readonly JobTransition[],
): Promise<void> {
  const movesBefore = moves.length;
  for (const { url, endpoint } of sites) {
    const ask = async <T>(path: string): Promise<T> =>
      (await callHttp({ method: 'GET', url: `${url}/v2/${endpoint.id}/${path}`, authorization: ROOT_KEY }))
        ?.body as T;
    const listed = async (status: string): Promise<number> =>
      (await ask<{ requests: unknown[] }>(`requests?status=${status}&limit=1000`)).requests.length;
    const { jobs } = await ask<{ jobs: Record<string, number> }>('health');
    const reached = (...statuses: string[]): number =>
      moves.filter(({ before, after }) => statuses.includes(after.status) && before?.status !== after.status)
        .length;
    assert.deepEqual(jobs, {
      inQueue: await listed('IN_QUEUE'),
      inProgress: await listed('IN_PROGRESS'),
      completed: reached('COMPLETED'),
      failed: reached('FAILED', 'TIMED_OUT'),
      retried: moves.reduce((sum, { before, after }) => sum + after.retries - (before?.retries ?? 0), 0),
    });
  }
  assert.equal(moves.length, movesBefore, 'jobs moved meanwhile');
}

function tally(moves: readonly JobTransition[]): Record<string, number> {
  const tally: Record<string, number> = {};
  for (const { before, after, removes } of moves) {
    const name = `${before?.status ?? 'new'}>${removes ? 'gone' : after.status}`;
    tally[name] = (tally[name] ?? 0) + 1;
  }
  return tally;
}
