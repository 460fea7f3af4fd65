import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Context } from './handler.ts';
import { deferred } from '../../testing/src/deferred.ts';
import { WorkerFixture } from '../../testing/src/worker-sdk/worker-fixture.ts';

function story(name: string, tell: () => Promise<void>): void {
  test(name, { timeout: 10_000 }, tell);
}

// A worker behaves the same whichever way its jobs come.
for (const channel of ['public', 'fast'] as const) {
  describe(`a worker on the ${channel} way`, () => {
    const bench = new WorkerFixture(channel);

    story('runs as many jobs at a time as it may, and takes no more', async () => {
      const release = deferred();
      let running = 0;
      let most = 0;
      const jobs = Array.from({ length: 10 }, () => bench.server.submit({}));
      bench.start(
        async () => {
          running += 1;
          most = Math.max(most, running);
          await release.promise;
          running -= 1;
        },
        { concurrency: 3 },
      );
      await bench.server.waitFor(() => jobs.filter(({ state }) => state === 'given').length === 3);
      release.resolve();
      await Promise.all(jobs.map((job) => bench.server.result(job)));
      assert.equal(most, 3);
      assert.ok(jobs.every(({ timesTaken }) => timesTaken === 1));
    });

    story('takes more than it runs where it may prefetch', async () => {
      const [release, bothRun] = [deferred(), deferred()];
      let running = 0;
      const jobs = Array.from({ length: 6 }, () => bench.server.submit({}));
      bench.start(
        async () => {
          running += 1;
          if (running === 2) bothRun.resolve();
          await release.promise;
        },
        { concurrency: 2, prefetch: 2 },
      );
      await Promise.all([
        bothRun.promise,
        bench.server.waitFor(() => jobs.filter(({ state }) => state === 'given').length === 4),
      ]);
      assert.equal(running, 2);
      release.resolve();
      await Promise.all(jobs.map((job) => bench.server.result(job)));
    });

    story('follows a function that says how many', async () => {
      const [release, asked] = [deferred(), deferred()];
      const answers: (number | Error)[] = [0, 2, new Error('out of order'), -1, 4];
      const told: number[] = [];
      const jobs = Array.from({ length: 5 }, () => bench.server.submit({}));
      bench.start(() => release.promise, {
        concurrency: async (current) => {
          told.push(current);
          if (told.length > answers.length) asked.resolve();
          const answer = answers[Math.min(told.length, answers.length) - 1];
          return answer instanceof Error ? await Promise.reject(answer) : (answer ?? 0);
        },
      });
      await asked.promise;
      assert.deepEqual(told.slice(0, 6), [1, 0, 2, 2, 2, 4]);
      await bench.server.waitFor(() => jobs.filter(({ state }) => state === 'given').length === 4);
      release.resolve();
      await Promise.all(jobs.map((job) => bench.server.result(job)));
    });

    story('takes none while that function says 0', async () => {
      bench.server.acceptsReturns = true;
      let places = 1;
      bench.start((job) => job.input, { concurrency: () => places });
      await bench.server.result(bench.server.submit('before'));
      await bench.server.waitFor(() =>
        channel === 'fast' ? [...bench.server.channels][0]?.credits === 1 : bench.server.held === 2,
      );
      places = 0;
      // Only the question about stops is left.
      await bench.server.waitFor(() =>
        channel === 'fast' ? bench.server.count('N') > 0 : bench.server.held === 1,
      );
      const job = bench.server.submit('after');
      assert.equal(job.state, 'waiting');
      places = 1;
      assert.deepEqual((await bench.server.result(job)).body, { output: 'after' });
    });

    story('nor any to wait for a place', async () => {
      bench.server.acceptsReturns = true;
      const taken = bench.server.submit('not here');
      let asked = 0;
      bench.start((job) => job.input, { prefetch: 2, concurrency: () => ((asked += 1), asked > 5 ? 1 : 0) });
      await bench.server.waitFor(() => taken.state === 'ended');
      assert.ok(asked > 5);
    });

    story('a thousand jobs are each done once', async () => {
      const jobs = Array.from({ length: 1_000 }, (_, n) => bench.server.submit({ n }));
      bench.start((taken) => (taken.input as { n: number }).n, { concurrency: 100 });
      await Promise.all(jobs.map((job) => bench.server.result(job)));
      assert.ok(
        jobs.every(({ results, timesTaken }, n) => results[0]?.body['output'] === n && timesTaken === 1),
      );
    });

    story('shows progress while a job runs, and none after', async () => {
      const job = bench.server.submit({});
      const shown = deferred();
      let late: Context['progress'] | undefined;
      bench.start(async (_job, { progress }) => {
        late = progress;
        progress({ done: '50 %' });
        await shown.promise;
        assert.throws(() => progress(1n), /progress cannot be sent as JSON/);
        return 'whole';
      });
      await bench.server.waitFor(() => job.progress.length > 0);
      assert.deepEqual([job.progress, job.state], [[{ done: '50 %' }], 'given']);
      shown.resolve();
      assert.deepEqual((await bench.server.result(job)).body, { output: 'whole' });
      late?.('too late');
      await bench.server.result(bench.server.submit({}));
      assert.equal(job.progress.length, 1);
    });

    story(
      'of many values in a row it shows the last, and the result does not wait for the others',
      async () => {
        const job = bench.server.submit({});
        const shown = deferred();
        bench.start(async (_job, context) => {
          const { progress, signal } = { ...context };
          for (let n = 1; n <= 10_000; n += 1) progress(n);
          await shown.promise;
          return signal.aborted;
        });
        await bench.server.waitFor(() => job.progress.at(-1) === 10_000);
        shown.resolve();
        assert.deepEqual((await bench.server.result(job)).body, { output: false });
        assert.ok(job.progress.length <= 2, `${job.progress.length} values were sent`);
      },
    );

    story('a cancelled job is told so, sends nothing, and makes place', async () => {
      const began = deferred<AbortSignal>();
      const [job, next] = [bench.server.submit({ wait: true }), bench.server.submit({})];
      bench.start(async (taken, { signal, progress }) => {
        if ((taken.input as { wait?: boolean }).wait !== true) return 'next';
        began.resolve(signal);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        progress('ignored');
        return 'unwanted';
      });
      const signal = await began.promise;
      if (channel === 'public') await bench.server.waitFor(() => bench.server.count('job-stop') > 0);
      bench.server.cancel(job);
      assert.deepEqual((await bench.server.result(next)).body, { output: 'next' });
      assert.equal((signal.reason as DOMException).name, 'AbortError');
      assert.deepEqual([job.results, job.progress], [[], []]);
      assert.equal(
        bench.server.received.filter(
          ({ operation, text, headers }) =>
            (operation === 'D' && text.startsWith(`${job.id} `)) ||
            (operation === 'job-done' && headers['x-request-id'] === job.id),
        ).length,
        0,
      );
    });

    story('a cancelled handler that does not listen loses its place after a while', async () => {
      const began = deferred();
      const [job, next] = [bench.server.submit({ wait: true }), bench.server.submit({})];
      bench.start((taken) => {
        if ((taken.input as { wait?: boolean }).wait !== true) return 'next';
        began.resolve();
        return new Promise(() => undefined);
      });
      await began.promise;
      if (channel === 'public') await bench.server.waitFor(() => bench.server.count('job-stop') > 0);
      bench.server.cancel(job);
      assert.deepEqual((await bench.server.result(next)).body, { output: 'next' });
    });

    story('a cancelled generator is closed, even if it never waits', async () => {
      const closed = deferred();
      const job = bench.server.submit({});
      bench.start(function* () {
        try {
          for (let n = 0; ; n += 1) yield n;
        } finally {
          closed.resolve();
        }
      });
      await bench.server.waitFor(
        () => job.chunks.length > 10 && (channel === 'fast' || bench.server.count('job-stop') > 0),
      );
      bench.server.cancel(job);
      await closed.promise;
      assert.deepEqual(job.results, []);
    });

    story('a job that is given again while it runs is begun anew', async () => {
      const aborted = deferred();
      const job = bench.server.submit({});
      let runs = 0;
      bench.start(
        async (_job, { signal }) => {
          runs += 1;
          if (runs > 1) return runs;
          signal.addEventListener('abort', () => aborted.resolve());
          return await new Promise(() => undefined);
        },
        { concurrency: 2 },
      );
      await bench.server.waitFor(() => job.state === 'given');
      job.state = 'waiting';
      bench.server.dispatch();
      assert.deepEqual((await bench.server.result(job)).body, { output: 2 });
      await aborted.promise;
    });
  });
}
