import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { errorFingerprint } from '../domain/error-fingerprint.ts';
import type { Job } from '../domain/job-records.ts';
import type { JobSearchFilter } from '../domain/job-search-query.ts';
import { actOnJobs } from './job-bulk-actions.ts';
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
      const act = (action: 'retry' | 'cancel' | 'redrive', ids: string[], input?: string) =>
        actOnJobs(bench.queue, { ...request, action, ids, input });

      assert.deepEqual(await act('cancel', [waiting.id, failed.id]), {
        done: [{ id: waiting.id }],
        skipped: [{ id: failed.id, reason: 'it has ended: FAILED' }],
      });
      const sent = await act('redrive', [again.id], '{"n":2.0}');
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
  });
}
