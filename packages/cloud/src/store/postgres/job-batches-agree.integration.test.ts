import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { seed } from '../../../../testing/src/property-testing.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { Job, JobChange, TakenJob } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import {
  made,
  newLeases,
  newPosition,
  NOW,
  numbersOf,
  random,
  submitAll,
  take,
} from './job-batches.fixture.ts';

const STEPS = 400;

/** Whoever asks for jobs does not notice whether they share a row. */
describe('stores with and without batches', () => {
  const databases: MigratedDatabase[] = [];
  /** To this one jobs come one by one. */
  let simple: JobStore;
  let alone: JobStore;
  let servers: JobStore[];

  before(async () => {
    for (const dialect of ['sqlite', 'sqlite', 'postgres'] as const)
      databases.push(await createMigratedDatabase(dialect));
    const [first, second, { database }] = databases as [MigratedDatabase, MigratedDatabase, MigratedDatabase];
    simple = first.database.jobs();
    alone = second.database.jobs();
    servers = [database.jobs(), database.jobs()];
  });
  after(async () => {
    for (const database of databases) await database.drop();
  });

  /** What can be seen of an endpoint. */
  const view = async (of: JobStore, endpointId: string, seqs: readonly number[]): Promise<unknown> => ({
    jobs: (await Promise.all(seqs.map((seq) => of.find(endpointId, seq)))).map(
      (whole) => whole && [whole.job, whole.payloads],
    ),
    counts: await of.counts(endpointId),
    waiting: (await of.countWaiting(endpointId, NOW + 1_000_000, 10_000)).waiting,
    listed: (await of.list(endpointId, { status: 'IN_QUEUE', maxRowsScanned: 10_000, now: NOW })).jobs,
    running: (await of.listRunning(endpointId)).map(({ seq }) => seq).sort((one, two) => one - two),
  });

  const shared: [name: string, stores: () => JobStore[]][] = [
    ['SQLite', () => [alone]],
    ['PostgreSQL', () => servers.slice(0, 1)],
    ['PostgreSQL with two servers', () => servers],
  ];
  for (const [name, stores] of shared) {
    test(`agree: ${name} (seed ${seed})`, async () => {
      const endpointId = `agree on ${name}`;
      const together = stores();
      const known: number[] = [];
      const takes: TakenJob[][] = [];
      let now = NOW + 10;
      for (let step = 0; step < STEPS; step += 1) {
        const on = together[random(together.length)] as JobStore;
        const both = async (what: string, ask: (of: JobStore) => Promise<unknown>): Promise<void> =>
          assert.deepEqual(await ask(on), await ask(simple), `step ${step}: ${what}, seed ${seed}`);
        const some = known[random(Math.max(1, known.length))] ?? -1;
        now += 1;
        const change = async (what: string, rule: (job: Job) => JobChange | undefined): Promise<void> =>
          both(`${what} ${some}`, async (of) => (await of.change(endpointId, some, rule))?.after);
        switch (random(12)) {
          case 0:
          case 1: {
            const jobs = Array.from({ length: 1 + random(30) }, () =>
              made(
                endpointId,
                { lowPriority: random(4) === 0, ...(random(3) === 0 && { executionTimeout: 5_000 }) },
                'one',
                `{"input": "${'x'.repeat(random(9) === 0 ? 3_000 : random(30))}"}`,
              ),
            );
            known.push(...jobs.map(({ job }) => job.seq));
            // Together on one, one after the other on the other: the order is that of the numbers on both.
            await submitAll(on, jobs);
            for (const job of jobs) await simple.submit(job);
            break;
          }
          case 2:
          case 3:
          case 4: {
            const names = newLeases(1 + random(20));
            await both('who is taken', async (of) => {
              const taken = await take(of, endpointId, names.length, names);
              takes.push(taken);
              return numbersOf(taken);
            });
            assert.deepEqual(takes.pop(), takes.pop());
            break;
          }
          case 5:
            await change('cancel', (job) => transitions.cancel(job, now));
            break;
          case 6:
            await change('lose', (job) => transitions.loseWorker(job, { workerId: 'w' }, 'gone', now));
            break;
          case 7:
            await change('return', (job) => transitions.returnToQueue(job, { workerId: 'w' }, now));
            break;
          case 8:
            await change('time to live', (job) => transitions.setTimeToLive(job, 100_000 + step, now));
            break;
          case 9: {
            const position = newPosition();
            await change('retry', (job) => transitions.retry(job, position, now));
            break;
          }
          case 10: {
            const several = Array.from(
              { length: 1 + random(20) },
              () => known[random(Math.max(1, known.length))] ?? -1,
            );
            await both('finish', async (of) =>
              (
                await of.changeAll(
                  [...new Set(several)].map((seq) => ({
                    endpointId,
                    seq,
                    next: (job) =>
                      transitions.finish(
                        job,
                        { workerId: 'w' },
                        seq % 2 === 0 ? { output: '1', error: null } : { output: null, error: '"failed"' },
                        now,
                      ),
                  })),
                )
              ).map((done) => done?.after),
            );
            break;
          }
          default:
            if (random(10) === 0) await both('purge', (of) => of.purge(endpointId));
            else await both('find', (of) => of.find(endpointId, some));
        }
        const job = (await simple.find(endpointId, some))?.job;
        if (job?.status === 'IN_QUEUE') await both('ahead', (of) => of.countAhead(job, 1_000));
        if (step % 20 === 0) await both('view', (of) => view(of, endpointId, known));
      }
      for (const of of together)
        assert.deepEqual(await view(of, endpointId, known), await view(simple, endpointId, known));
    });
  }
});
