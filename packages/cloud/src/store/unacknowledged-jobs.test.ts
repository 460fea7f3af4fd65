import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { createMigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../testing/src/migrated-database.ts';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { newJob } from '../queue/job-submission.ts';
import * as transitions from '../domain/job-transitions.ts';
import type { Job, JobChange, TakenJob } from '../domain/job-records.ts';
import type { JobStore } from './job-store.ts';
import { openDatabase } from './open-store.ts';
import { queueSettings } from './queue-settings.fixture.ts';

const NOW = 1_800_000_000_000;
const WORKER = { workerId: 'w1' };

/** What may happen to a job that a worker may have. */
const RULES: Record<string, (job: Job) => JobChange | undefined> = {
  finish: (job) => transitions.finish(job, WORKER, { output: '{"x":1.0}', error: null, waited: 3 }, NOW + 20),
  fail: (job) => transitions.finish(job, WORKER, { output: null, error: '"no"' }, NOW + 20),
  finishForAnother: (job) =>
    transitions.finish(job, { workerId: 'another' }, { output: '1', error: null }, NOW + 20),
  lose: (job) => transitions.loseWorker(job, WORKER, 'gone', NOW + 20),
  returnTaken: (job) => transitions.returnToQueue(job, WORKER, NOW + 20),
  progress: (job) => transitions.progress(job, WORKER, '"half"'),
  cancel: (job) => transitions.cancel(job, NOW + 20),
  setTimeToLive: (job) => transitions.setTimeToLive(job, 50_000, NOW + 20),
  break: () => {
    throw new Error('this rule is broken');
  },
};
const STEPS = [
  'submit',
  'submitTwo',
  'submitUntaken',
  'take',
  'chunk',
  'look',
  'purge',
  'pause',
  ...Object.keys(RULES),
];

interface Step {
  what: string;
  /** Which of the jobs. */
  of: number;
  /** It does not wait for the step before. */
  together: boolean;
}

const LAST_LOOK: Step = { what: 'look', of: 0, together: false };

const anyStep: fc.Arbitrary<Step> = fc.record({
  what: fc.oneof(fc.constantFrom('submit', 'finish'), fc.constantFrom(...STEPS)),
  of: fc.nat({ max: 3 }),
  together: fc.boolean(),
});

for (const kind of DATABASES) {
  describe(`jobs that are not acknowledged yet, on ${kind}`, () => {
    let place: MigratedDatabase;
    let store: JobStore;
    let endpoints = 0;
    let number = 0;
    let leases = 0;

    before(async () => {
      place = await createMigratedDatabase(kind);
      store = place.database.jobs();
    });
    after(() => place.drop());

    /**
     * Plays the steps on an endpoint of its own. Answers all that can be seen of it, but for numbers and
     * names.
     */
    async function play(steps: readonly Step[], untold: boolean): Promise<unknown[]> {
      const endpointId = `endpoint ${++endpoints}`;
      const seqs: number[] = [];
      const seen: unknown[] = [];
      /** In the order in which it was asked for: what is answered first is up to the disk. */
      const see = async (looking: Promise<unknown>): Promise<void> => {
        const place = seen.push(undefined) - 1;
        seen[place] = await looking;
      };
      const submit = async (): Promise<void> => {
        const whole = newJob(queueSettings(endpointId), 'one', '{"input":{"float":1.0}}', {}, ++number, NOW);
        seqs.push(whole.job.seq);
        await store.submit(whole, undefined, untold);
      };
      const take = (): Promise<void> => {
        const taking = store.take(
          endpointId,
          transitions.takeRequest(() => [{ ...WORKER, lease: `lease ${++leases}` }], NOW + 5),
        );
        return see(
          taking.then((taken) =>
            taken.map(({ job, request }) => [seqs.indexOf(job.seq), job.status, request]),
          ),
        );
      };
      /** Where they can, what comes in and whoever takes it meet. */
      const taken = async (submitted: Promise<unknown>): Promise<void> =>
        void (await Promise.all(store.sameTurnTakes ? [submitted, take()] : [submitted.then(take)]));
      const look = async (): Promise<void> => {
        for (const [index, seq] of seqs.entries()) {
          const found = await store.find(endpointId, seq);
          seen.push(
            found && {
              ...found,
              job: {
                ...found.job,
                endpointId,
                seq: index,
                id: index,
                position: index,
                lease: found.job.lease !== null,
              },
              chunks: await store.listChunks(endpointId, seq, 0, 1_000),
            },
          );
        }
        seen.push(
          await store.counts(endpointId),
          (await store.listRunning(endpointId)).map(({ seq }) => seqs.indexOf(seq)).sort(),
        );
        seen.push(
          (await store.list(endpointId, { maxRowsScanned: 100, now: NOW + 30 })).jobs.map(
            ({ seq, bytes }) => [seqs.indexOf(seq), bytes],
          ),
        );
      };
      const step = async ({ what, of }: Step): Promise<void> => {
        const seq = seqs[of % Math.max(1, seqs.length)] ?? -1;
        if (what === 'submit') await taken(submit());
        else if (what === 'submitTwo') await taken(Promise.all([submit(), submit()]));
        else if (what === 'submitUntaken') await submit();
        else if (what === 'take') await take();
        else if (what === 'chunk')
          await store.appendChunks(endpointId, seq, (job) =>
            transitions.holdsLease(job, WORKER) ? [{ text: '{"output":1}', workerNumber: 0 }] : undefined,
          );
        else if (what === 'look') await look();
        else if (what === 'purge') await see(store.purge(endpointId));
        else if (what === 'pause') await new Promise((resolve) => setTimeout(resolve, 12));
        else
          await see(
            store
              .change(endpointId, seq, (job) => RULES[what]?.(job))
              .then((done) => done && [done.before.status, done.after.status, done.changed], String),
          );
      };
      // Where a take has found nothing, the next one meets what comes in.
      await take();
      let running: Promise<void>[] = [];
      for (const one of [...steps, LAST_LOOK]) {
        if (!one.together || one.what === 'look' || kind === 'postgres') {
          await Promise.all(running);
          running = [];
        }
        running.push(step(one));
        if (one.what === 'look') await Promise.all(running);
      }
      await store.removeEndpoint(endpointId);
      return JSON.parse(JSON.stringify(seen).replaceAll(endpointId, 'endpoint')) as unknown[];
    }

    test('behave like acknowledged ones', async () => {
      await checkProperty(
        fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 12 }), async (steps) =>
          assert.deepEqual(await play(steps, true), await play(steps, false)),
        ),
        kind === 'sqlite' ? 300 : 20,
      );
    });

    test('are there when the database is opened again', async () => {
      const here = await createMigratedDatabase(kind);
      const whole = newJob(queueSettings('opened again'), 'one', '{"input":1}', {}, ++number, NOW);
      const first = here.database.jobs();
      const take = (): Promise<TakenJob[]> =>
        first.take(
          'opened again',
          transitions.takeRequest(() => [{ ...WORKER, lease: 'the lease' }], NOW),
        );
      const taking = take();
      await first.submit(whole, undefined, true);
      const met = await taking;
      const taken = met.length > 0 ? met : await take();
      await here.database.close();

      const again = await openDatabase({
        database: here.testDatabase.url,
        data: here.testDatabase.data,
        poolSize: 5,
        onError: assert.fail,
      });
      assert.deepEqual(
        await again.jobs().listRunning(),
        taken.map(({ job }) => job),
      );
      await again.close();
      await here.testDatabase.drop();
    });

    test('and have ended are there when the database is opened again, few or many', async () => {
      const here = await createMigratedDatabase(kind);
      const first = here.database.jobs();
      const ended: unknown[] = [];
      for (let count = 1; count <= 40; count += 1) {
        const whole = newJob(queueSettings('ended'), 'one', `{"input":${count}}`, {}, ++number, NOW);
        const take = (): Promise<TakenJob[]> =>
          first.take(
            'ended',
            transitions.takeRequest(() => [{ ...WORKER, lease: `lease ${count}` }], NOW),
          );
        const taking = take();
        await first.submit(whole, undefined, true);
        if ((await taking).length === 0) await take();
        const output = count % 7 === 0 ? JSON.stringify('large'.repeat(1_000)) : `{"count":${count}.0}`;
        const done = await first.change('ended', whole.job.seq, (job) =>
          transitions.finish(job, WORKER, { output, error: null }, NOW + count),
        );
        ended.push({ job: done?.after, payloads: { request: whole.payloads.request, output, error: null } });
      }
      await here.database.close();

      const again = await openDatabase({
        database: here.testDatabase.url,
        data: here.testDatabase.data,
        poolSize: 5,
        onError: assert.fail,
      });
      const found = again.jobs();
      assert.deepEqual(
        await Promise.all((ended as { job: Job }[]).map(({ job }) => found.find('ended', job.seq))),
        ended,
      );
      assert.equal((await found.counts('ended')).completed, 40);
      await again.close();
      await here.testDatabase.drop();
    });

    test('are there once, also when the same submission is made again', async () => {
      const whole = newJob(queueSettings('again'), 'one', '{"input":1}', {}, ++number, NOW);
      const taking = store.take(
        'again',
        transitions.takeRequest(() => [{ ...WORKER, lease: 'the lease' }], NOW),
      );
      const outcomes = [
        ...(await Promise.all([store.submit(whole, undefined, true), store.submit(whole, undefined, true)])),
        await store.submit(whole, undefined, true),
      ];
      await taking;
      assert.deepEqual(
        outcomes.map(({ created }) => created),
        [true, true, true],
      );
      const { inQueue, inProgress } = await store.counts('again');
      assert.equal(inQueue + inProgress, 1);
    });
  });
}
