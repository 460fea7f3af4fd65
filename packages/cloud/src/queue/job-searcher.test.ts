import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { errorFingerprint } from '../domain/error-fingerprint.ts';
import { seqFromJobId } from '../domain/job-ids.ts';
import type { Job } from '../domain/job-records.ts';
import type { JobSearchFilter } from '../domain/job-search-query.ts';
import { MAX_RUN_BODY_BYTES } from '../domain/limits.ts';
import { actOnJobs } from './job-bulk-actions.ts';
import type { InputEdit } from './job-bulk-actions.ts';
import { HOUR, queueFixtures } from './job-queue.fixture.ts';
import type { QueueFixture } from './job-queue.fixture.ts';
import { JobSearcher } from './job-searcher.ts';

for (const kind of DATABASES) {
  describe(`search of jobs, on ${kind}`, () => {
    const fixture = queueFixtures(kind);
    const submit = (bench: QueueFixture, request: string): Promise<Job> =>
      bench.queue.submit({ ...bench.request(), request });
    const fail = async (bench: QueueFixture, error: string): Promise<Job> => {
      const { seq } = await submit(bench, `{"input":{"error":${error}}}`);
      const taken = await bench.takeOne('w');
      assert.equal(taken.seq, seq);
      await bench.queue.finish(bench.id, seq, { workerId: 'w' }, { output: null, error });
      return taken;
    };
    const found = async (
      bench: QueueFixture,
      filter: JobSearchFilter,
      limit = 100,
      bounds?: { rows: number; milliseconds: number },
    ): Promise<string[][]> => {
      const search = new JobSearcher({ store: bench.store, clock: bench.clock, ...(bounds && { bounds }) });
      const pages: string[][] = [];
      let before: number | undefined;
      do {
        const page = await search.search(bench.id, filter, { before, limit });
        pages.push(page.jobs.map(({ job }) => job.id));
        before = page.next;
      } while (before !== undefined);
      return pages;
    };

    test('by status, time, id, text and fingerprint', async () => {
      const bench = fixture();
      const start = bench.clock.now();
      const one = await fail(bench, '"no model 17"');
      bench.clock.advance(1_000);
      const two = await fail(bench, '"no memory"');
      bench.clock.advance(1_000);
      const three = await fail(bench, '"no model 4"');
      const waiting = await submit(bench, '{"input":{"Prompt":"A red Fox, Ä"}}');
      const all = [waiting, three, two, one].map(({ id }) => id);
      const cases: [JobSearchFilter, Job[]][] = [
        [{ statuses: ['FAILED'] }, [three, two, one]],
        [{ statuses: ['FAILED', 'TIMED_OUT'], from: start + 1 }, [three, two]],
        [{ statuses: ['IN_QUEUE'] }, [waiting]],
        [{ statuses: ['IN_PROGRESS'] }, []],
        [{ statuses: ['IN_QUEUE', 'FAILED'], to: start + 1_000 }, [one]],
        [{ from: start + 1_000, to: start + 2_000 }, [two]],
        [{ idPrefix: two.id.slice(0, 20) }, [two]],
        [{ text: 'red fOX, Ä' }, [waiting]],
        [{ text: '%' }, []],
        [{ fingerprint: errorFingerprint('"no model 99"').fingerprint }, [three, one]],
        [{ fingerprint: '000000000000' }, []],
      ];
      for (const [filter, jobs] of cases)
        assert.deepEqual(
          (await found(bench, filter)).flat(),
          jobs.map(({ id }) => id),
          JSON.stringify(filter),
        );
      assert.deepEqual((await found(bench, {}, 3)).flat(), all);
      const { fingerprint } = errorFingerprint('"no model 1"');
      assert.deepEqual((await found(bench, { fingerprint }, 1)).flat(), [three.id, one.id]);
    });

    test('one search looks at a bounded number of jobs', async () => {
      const bench = fixture();
      const target = await submit(bench, '{"input":"needle"}');
      for (let n = 0; n < 25; n += 1) await submit(bench, '{"input":"hay"}');
      const pages = await found(bench, { text: 'needle' }, 100, { rows: 10, milliseconds: 60_000 });
      assert.deepEqual(pages, [[], [], [target.id]]);
    });

    test('jobs whose retention is over are not found', async () => {
      const bench = fixture({ retention: HOUR });
      await fail(bench, '"gone"');
      bench.clock.advance(HOUR + 1);
      assert.deepEqual(await found(bench, { statuses: ['FAILED'] }), [[]]);
    });

    test('errors are grouped, the most frequent first', async () => {
      const bench = fixture();
      const start = bench.clock.now();
      await fail(bench, '"no model 1"');
      bench.clock.advance(500);
      await fail(bench, '"no memory"');
      bench.clock.advance(500);
      const last = await fail(bench, '"no model 2"');
      const search = new JobSearcher({ store: bench.store, clock: bench.clock });
      const { groups, complete } = await search.errorGroups(bench.id, {});
      assert.equal(complete, true);
      assert.deepEqual(
        groups.map(({ message, count, firstSeen, lastSeen }) => [message, count, firstSeen, lastSeen]),
        [
          ['no model <n>', 2, start, start + 1_000],
          ['no memory', 1, start + 500, start + 500],
        ],
      );
      assert.equal(groups[0]?.sample.job.id, last.id);
    });

    test('many jobs are retried, cancelled or sent again, and what cannot be is said', async () => {
      const bench = fixture();
      const failed = await fail(bench, '"bad"');
      const again = await fail(bench, '"worse"');
      const waiting = await submit(bench, '{"input":1}');
      const request = { endpoint: bench.request().endpoint, accountId: 'a' };
      const act = (action: 'retry' | 'cancel' | 'redrive', ids: string[], edit?: InputEdit) =>
        actOnJobs(bench.queue, { ...request, action, ids, edit });

      assert.deepEqual(await act('cancel', [waiting.id, failed.id]), {
        done: [{ id: waiting.id }],
        skipped: [{ id: failed.id, reason: 'it has ended: FAILED' }],
      });
      const sent = await act('redrive', [again.id], { inputs: new Map([[again.id, '{"n":2.0}']]) });
      const made = sent.done[0]?.newId ?? '';
      const [{ job, request: body } = assert.fail()] = await bench.take('w');
      assert.deepEqual([job.id, body], [made, '{"input":{"n":2.0}}']);
      assert.equal(await bench.status(again), 'FAILED');
      assert.deepEqual(await act('retry', [failed.id, made, 'nothing']), {
        done: [{ id: failed.id }],
        skipped: [
          { id: made, reason: 'only a FAILED or TIMED_OUT job can be retried; this one is IN_PROGRESS' },
          { id: 'nothing', reason: 'it is unknown or its result has expired' },
        ],
      });
      assert.equal(await bench.status(failed), 'IN_QUEUE');
    });

    test('a patch changes the inputs of many jobs, each on its own terms', async () => {
      const bench = fixture();
      const failed = [await fail(bench, '"bad"'), await fail(bench, '12345678901234567890')];
      const plain = await submit(bench, '{"input":"text"}');
      await bench.takeOne('w');
      await bench.queue.finish(bench.id, plain.seq, { workerId: 'w' }, { output: null, error: '"bad"' });
      const act = (patch: Record<string, unknown>) =>
        actOnJobs(bench.queue, {
          endpoint: bench.request().endpoint,
          accountId: 'a',
          action: 'redrive',
          ids: [...failed, plain].map(({ id }) => id),
          edit: { patch },
        });
      const { done, skipped } = await act({ model: 'small' });
      assert.deepEqual(skipped, [
        { id: plain.id, reason: 'its input is not an object, so the patch has nothing to change' },
      ]);
      assert.deepEqual(
        done.map(({ id }) => id),
        failed.map(({ id }) => id),
      );
      const requests = [(await bench.takeOne('w')).id, (await bench.takeOne('w')).id];
      assert.deepEqual(requests.toSorted(), done.map(({ newId = '' }) => newId).toSorted());
      const payloads = await Promise.all(
        done.map(({ newId = '' }) => bench.queue.find(bench.id, seqFromJobId(newId) ?? 0)),
      );
      assert.deepEqual(
        payloads.map((found) => found?.payloads.request),
        [
          '{"input":{"error":"bad","model":"small"}}',
          '{"input":{"error":12345678901234567890,"model":"small"}}',
        ],
      );
      const tooLarge = await act({ text: 'x'.repeat(MAX_RUN_BODY_BYTES) });
      assert.match(tooLarge.skipped[0]?.reason ?? '', /would be larger than 10485760 bytes/);
    });
  });
}
