import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../testing/src/migrated-database.ts';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { newJob } from '../queue/job-submission.ts';
import * as transitions from '../domain/job-transitions.ts';
import type { JobStore } from './job-store.ts';
import { row, sql } from './sql.ts';
import type { Row } from './sql.ts';

const NOW = 1_800_000_000_000;

for (const kind of DATABASES) {
  describe(`what an operator sees of a job in the tables of ${kind}`, () => {
    let migrated: MigratedDatabase;
    let store: JobStore;

    before(async () => {
      migrated = await createMigratedDatabase(kind);
      store = migrated.database.jobs();
    });
    after(() => migrated.drop());

    /** Straight from the table, past the store. */
    const shown = async (seq: number): Promise<Row | undefined> => {
      const found = await migrated.database.read(() =>
        row<Row>(
          sql`select status, worker_id, lease, taken_at, due_at, attempt, ended_at, output from jobs
            where seq = ${seq}`,
        ),
      );
      return found && { ...found };
    };

    for (const together of [1, 100]) {
      test(`the row shows the true state, of ${together} taken together`, async () => {
        const endpoint = {
          id: `endpoint ${together}`,
          accountId: 'one',
          executionTimeout: 0,
          jobTtl: 86_400_000,
          retention: null,
          maxRetries: 1,
        };
        const seqs = Array.from({ length: together }, (_, index) => together * 1_000 + index);
        const taken = (): ReturnType<JobStore['take']> =>
          store.take(
            endpoint.id,
            transitions.takeRequest(
              () => seqs.map((seq) => ({ workerId: `worker ${seq}`, lease: `lease ${seq}` })),
              NOW + 5,
            ),
          );
        await Promise.all(
          seqs.map((seq) =>
            store.submit(newJob(endpoint, 'one', '{"input":1}', {}, seq, NOW), undefined, true),
          ),
        );
        const [seq] = seqs as [number];
        const waiting = {
          status: 'IN_QUEUE',
          worker_id: null,
          lease: null,
          taken_at: null,
          due_at: NOW + 86_400_000,
          attempt: 0,
          ended_at: null,
          output: null,
        };
        assert.deepEqual(await shown(seq), waiting);

        await taken();
        const running = {
          ...waiting,
          status: 'IN_PROGRESS',
          worker_id: `worker ${seq}`,
          lease: `lease ${seq}`,
          taken_at: NOW + 5,
          due_at: NOW + 10_005,
          attempt: 1,
        };
        assert.deepEqual(await shown(seq), running);

        const holder = { workerId: `worker ${seq}` };
        await store.change(endpoint.id, seq, (job) => transitions.renewLease(job, holder, NOW + 7_000));
        assert.deepEqual(await shown(seq), { ...running, due_at: NOW + 17_000 });

        await store.change(endpoint.id, seq, (job) => transitions.returnToQueue(job, holder, NOW + 8_000));
        assert.deepEqual(await shown(seq), waiting);

        await taken();
        await store.change(endpoint.id, seq, (job) =>
          transitions.finish(job, holder, { output: '"done"', error: null }, NOW + 9_000),
        );
        assert.deepEqual(await shown(seq), {
          ...running,
          status: 'COMPLETED',
          lease: null,
          due_at: NOW + 9_000 + 1_800_000,
          ended_at: NOW + 9_000,
          output: '"done"',
        });
      });
    }
  });
}
