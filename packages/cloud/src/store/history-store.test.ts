import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../testing/src/migrated-database.ts';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { countOf } from '../domain/history/rollup.ts';
import type { Rollup } from '../domain/history/rollup.ts';
import * as transitions from '../domain/job-transitions.ts';
import { newJob } from '../queue/job-submission.ts';
import type { HistoryStore } from './history-store.ts';
import type { JobStore } from './job-store.ts';
import { historyTable } from './tables/history.table.ts';
import { queueSettings } from './queue-settings.fixture.ts';

const HOUR = 3_600_000;
const NOW = 1_800_000_000_000 - (1_800_000_000_000 % HOUR);

for (const kind of DATABASES) {
  describe(`history store on ${kind}`, () => {
    let place: MigratedDatabase;
    let jobs: JobStore;
    let history: HistoryStore;
    let number = 0;
    before(async () => {
      place = await createMigratedDatabase(kind);
      jobs = place.database.jobs();
      history = historyTable(place.database);
    });
    after(() => place.drop());

    const submit = (id: string, at: number): ReturnType<JobStore['submit']> =>
      jobs.submit(newJob(queueSettings(id, 'a'), 'a', '{"input":{}}', {}, ++number, at));
    /** Takes all that waits and ends it: each by its own means, so that every way of ending is counted. */
    const finish = async (
      id: string,
      at: number,
      how: 'plain' | 'large' | 'cancel' | 'lose',
    ): Promise<void> => {
      const taken = await jobs.take(
        id,
        transitions.takeRequest(() => [{ workerId: 'w', lease: `l${++number}` }], at),
      );
      for (const { job } of taken) {
        const holder = { workerId: 'w', lease: job.lease ?? undefined };
        await jobs.change(id, job.seq, (current) => {
          if (how === 'cancel') return transitions.cancel(current, at + 300);
          if (how === 'lose') return transitions.loseWorker(current, holder, 'gone', at + 300);
          const output = how === 'large' ? JSON.stringify('x'.repeat(10_000)) : '1';
          return transitions.finish(current, holder, { output, error: null }, at + 300);
        });
      }
    };
    const total = async (id: string, step: 'minute' | 'hour', name: string): Promise<number> =>
      (await history.read(id, step, NOW - HOUR, NOW + HOUR)).reduce(
        (sum, { data }) => sum + countOf(data, name),
        0,
      );

    test('every submission and every end is counted once, before and after it is folded', async () => {
      for (let count = 0; count < 4; count += 1) await submit('e', NOW + 1_000);
      await finish('e', NOW + 2_000, 'lose');
      for (const how of ['plain', 'large', 'cancel', 'plain'] as const) await finish('e', NOW + 60_000, how);
      const expected = { requests: 4, COMPLETED: 3, CANCELLED: 1, FAILED: 0, retries: 1 };
      for (const folded of [false, true]) {
        if (folded) assert.equal(await history.foldJobs(NOW + HOUR), false);
        for (const step of ['minute', 'hour'] as const)
          for (const [name, count] of Object.entries(expected))
            assert.equal(await total('e', step, name), count, `${name} by ${step}, folded: ${folded}`);
      }
      const minutes = await history.read('e', 'minute', NOW, NOW + HOUR);
      assert.deepEqual(
        minutes.map(({ start }) => start - NOW),
        [0, 60_000],
      );
      const runs = Object.entries(minutes[1]?.data ?? {}).filter(([name]) => name.startsWith('run/'));
      assert.deepEqual(runs, [['run/6', [4, 1_200, 0]]]);
      // What comes late is added to what was folded.
      await submit('e', NOW + 1_000);
      assert.equal(await total('e', 'minute', 'requests'), 5);
      await history.foldJobs(NOW + HOUR);
      assert.equal(await total('e', 'hour', 'requests'), 5);
      await jobs.purge('e');
    });

    test('samples are added to minutes and hours, and old rows go first', async () => {
      const sample = (minute: number, data: Rollup) => ({ resourceId: 'p', minute, data });
      await history.addSamples([sample(NOW, { cpu: [2, 3, 2] }), sample(NOW + 60_000, { cpu: [1, 5, 5] })]);
      await history.addSamples([sample(NOW, { cpu: [1, 1, 1] })]);
      assert.deepEqual(await history.read('p', 'minute', NOW, NOW + HOUR), [
        { start: NOW, data: { cpu: [3, 4, 2] } },
        { start: NOW + 60_000, data: { cpu: [1, 5, 5] } },
      ]);
      assert.deepEqual(await history.read('p', 'hour', NOW, NOW + HOUR), [
        { start: NOW, data: { cpu: [4, 9, 5] } },
      ]);
      await history.trim({ minutesFrom: 0, hoursFrom: 0, maxMinutes: 2 });
      const kept = await history.read('p', 'minute', NOW, NOW + HOUR);
      assert.deepEqual(
        kept.map(({ start }) => start),
        [NOW + 60_000],
      );
      await history.trim({ minutesFrom: NOW + HOUR, hoursFrom: NOW + HOUR, maxMinutes: 1 });
      assert.deepEqual(await history.read('p', 'hour', NOW, NOW + HOUR), []);
    });

    test('the depth of queues is that of jobs, and a deleted endpoint leaves nothing', async () => {
      await submit('deep', NOW);
      await submit('deep', NOW);
      assert.deepEqual(
        (await history.queueDepths()).find(({ endpointId }) => endpointId === 'deep'),
        { endpointId: 'deep', queued: 2, running: 0 },
      );
      await jobs.removeEndpoint('deep');
      await history.remove('deep');
      assert.equal(await total('deep', 'minute', 'requests'), 0);
    });
  });
}
