import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { JobQueue } from './job-queue.ts';
import type { JobOptions } from './job-submission.ts';
import { queueFixtures, POLL_MS, SECOND } from './job-queue.fixture.ts';
import type { QueueFixture } from './job-queue.fixture.ts';

/** An immediate answer comes within this time, and one that has to be waited for does not. */
const AT_ONCE_MS = 2 * SECOND;

describe('two servers on one database', () => {
  const bench = queueFixtures('postgres');
  const both = (on: QueueFixture): [JobQueue, JobQueue] => [on.queue, on.newServer(on.otherServerStore())];
  const takeAt = async (
    server: JobQueue,
    on: QueueFixture,
    workerId: string,
  ): Promise<number | undefined> => {
    const taken = await Promise.race([
      server.take(on.id, workerId, 1, POLL_MS, on.signal),
      pause(AT_ONCE_MS, []),
    ]);
    return taken[0]?.job.seq;
  };

  test('a result counts when the worker sends it to the server that gave it the job first', async () => {
    const on = bench();
    const [one, other] = both(on);
    const job = await on.submit();
    assert.equal(await takeAt(one, on, 'w'), job.seq);
    await other.reaper.workerGone(on.id, 'w', 'it seemed lost');
    assert.equal(await takeAt(other, on, 'w'), job.seq);
    await one.progress(on.id, job.seq, { workerId: 'w' }, '50');
    assert.equal((await one.find(on.id, job.seq))?.payloads.output, '50');
    assert.equal(
      await one.finish(on.id, job.seq, { workerId: 'w' }, { output: '"done"', error: null }),
      true,
    );
    assert.equal(await on.status(job), 'COMPLETED');
  });

  test('no worker waits beside a job that a take on another server had locked and did not want', async () => {
    const low: JobOptions = { lowPriority: true };
    for (let round = 0; round < 10; round += 1) {
      const on = bench();
      const servers = both(on);
      const jobs = [await on.submit(), await on.submit(low)];
      const taken = await Promise.all(servers.map((server, index) => takeAt(server, on, `w${index}`)));
      assert.deepEqual(
        taken.toSorted(),
        jobs.map(({ seq }) => seq),
      );
    }
  });

  test('no worker waits beside a job that is being changed', async () => {
    for (let round = 0; round < 20; round += 1) {
      const on = bench();
      const job = await on.submit();
      const changed = on.queue.setTimeToLive(on.id, job.seq, 60 * SECOND);
      await pause(Math.random() * 4);
      assert.equal(await takeAt(on.queue, on, 'w'), job.seq);
      await changed;
    }
  });
});

describe('a batch with one part that cannot be stored', () => {
  const bench = queueFixtures('postgres');

  test('announces the job ends that were stored', async () => {
    const on = bench();
    const calling = on.queue.submitAndWait(
      on.request({ sync: { wait: POLL_MS, waitGiven: true } }),
      POLL_MS,
      on.signal,
    );
    const [taken] = await on.take('w');
    assert.ok(taken !== undefined);
    const other = await on.submit();
    const broken = on.store.change(on.id, other.seq, () => {
      throw new Error('this rule fails');
    });
    const refused = assert.rejects(broken, /this rule fails/);
    assert.equal(await on.finish('w', taken.job), true);
    await refused;
    assert.equal((await calling).outcome?.job.status, 'COMPLETED');
    assert.equal(on.queue.heartbeats.statusOf(on.id, 'w')?.busy, 0);
  });
});
