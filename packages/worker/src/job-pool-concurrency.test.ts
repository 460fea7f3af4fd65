import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Context } from './handler.ts';
import { WorkerFixture } from '../../testing/src/worker-sdk/worker-fixture.ts';

function workerTest(name: string, run: () => Promise<void>): void {
  test(name, { timeout: 10_000 }, run);
}

// A worker behaves the same on either transport.
for (const channel of ['public', 'fast'] as const) {
  describe(`a worker on the ${channel} channel`, () => {
    const fixture = new WorkerFixture(channel);

    workerTest('runs up to its concurrency and takes no more', async () => {
      const release = Promise.withResolvers<void>();
      let running = 0;
      let most = 0;
      const jobs = Array.from({ length: 10 }, () => fixture.server.submit({}));
      fixture.start(
        async () => {
          running += 1;
          most = Math.max(most, running);
          await release.promise;
          running -= 1;
        },
        { concurrency: 3 },
      );
      await fixture.server.waitFor(() => jobs.filter(({ state }) => state === 'given').length === 3);
      release.resolve();
      await Promise.all(jobs.map((job) => fixture.server.result(job)));
      assert.equal(most, 3);
      assert.ok(jobs.every(({ timesTaken }) => timesTaken === 1));
    });

    workerTest('takes more jobs than it runs where it may prefetch', async () => {
      const [release, bothRun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let running = 0;
      const jobs = Array.from({ length: 6 }, () => fixture.server.submit({}));
      fixture.start(
        async () => {
          running += 1;
          if (running === 2) bothRun.resolve();
          await release.promise;
        },
        { concurrency: 2, prefetch: 2 },
      );
      await Promise.all([
        bothRun.promise,
        fixture.server.waitFor(() => jobs.filter(({ state }) => state === 'given').length === 4),
      ]);
      assert.equal(running, 2);
      release.resolve();
      await Promise.all(jobs.map((job) => fixture.server.result(job)));
    });

    workerTest('follows a concurrency function', async () => {
      const [release, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const answers: (number | Error)[] = [0, 2, new Error('out of order'), -1, 4];
      const seen: number[] = [];
      const jobs = Array.from({ length: 5 }, () => fixture.server.submit({}));
      fixture.start(() => release.promise, {
        concurrency: async (current) => {
          seen.push(current);
          if (seen.length > answers.length) asked.resolve();
          const answer = answers[Math.min(seen.length, answers.length) - 1];
          return answer instanceof Error ? await Promise.reject(answer) : (answer ?? 0);
        },
      });
      await asked.promise;
      assert.deepEqual(seen.slice(0, 6), [1, 0, 2, 2, 2, 4]);
      await fixture.server.waitFor(() => jobs.filter(({ state }) => state === 'given').length === 4);
      release.resolve();
      await Promise.all(jobs.map((job) => fixture.server.result(job)));
    });

    workerTest('takes none while that function returns 0', async () => {
      fixture.server.acceptsReturns = true;
      let slots = 1;
      fixture.start((job) => job.input, { concurrency: () => slots });
      await fixture.server.result(fixture.server.submit('before'));
      await fixture.server.waitFor(() =>
        channel === 'fast' ? [...fixture.server.channels][0]?.credits === 1 : fixture.server.held === 2,
      );
      slots = 0;
      // Only the cancellation poll is left.
      await fixture.server.waitFor(() =>
        channel === 'fast' ? fixture.server.count('N') > 0 : fixture.server.held === 1,
      );
      const job = fixture.server.submit('after');
      assert.equal(job.state, 'waiting');
      slots = 1;
      assert.deepEqual((await fixture.server.result(job)).body, { output: 'after' });
    });

    workerTest('prefetches none while that function returns 0', async () => {
      fixture.server.acceptsReturns = true;
      const taken = fixture.server.submit('not here');
      let asked = 0;
      fixture.start((job) => job.input, {
        prefetch: 2,
        concurrency: () => ((asked += 1), asked > 5 ? 1 : 0),
      });
      await fixture.server.waitFor(() => taken.state === 'ended');
      assert.ok(asked > 5);
    });

    workerTest('a thousand jobs are each run once', async () => {
      const jobs = Array.from({ length: 1_000 }, (_, n) => fixture.server.submit({ n }));
      fixture.start((taken) => (taken.input as { n: number }).n, { concurrency: 100 });
      await Promise.all(jobs.map((job) => fixture.server.result(job)));
      assert.ok(
        jobs.every(({ results, timesTaken }, n) => results[0]?.body['output'] === n && timesTaken === 1),
      );
    });

    workerTest('sends progress while a job runs, and none after', async () => {
      const job = fixture.server.submit({});
      const shown = Promise.withResolvers<void>();
      let late: Context['progress'] | undefined;
      fixture.start(async (_job, { progress }) => {
        late = progress;
        progress({ done: '50 %' });
        await shown.promise;
        assert.throws(() => progress(1n), /progress cannot be sent as JSON/);
        return 'whole';
      });
      await fixture.server.waitFor(() => job.progress.length > 0);
      assert.deepEqual([job.progress, job.state], [[{ done: '50 %' }], 'given']);
      shown.resolve();
      assert.deepEqual((await fixture.server.result(job)).body, { output: 'whole' });
      late?.('too late');
      await fixture.server.result(fixture.server.submit({}));
      assert.equal(job.progress.length, 1);
    });

    workerTest(
      'sends the last of many values in a row, and the result does not wait for the others',
      async () => {
        const job = fixture.server.submit({});
        const shown = Promise.withResolvers<void>();
        fixture.start(async (_job, context) => {
          const { progress, signal } = { ...context };
          for (let n = 1; n <= 10_000; n += 1) progress(n);
          await shown.promise;
          return signal.aborted;
        });
        await fixture.server.waitFor(() => job.progress.at(-1) === 10_000);
        shown.resolve();
        assert.deepEqual((await fixture.server.result(job)).body, { output: false });
        assert.ok(job.progress.length <= 2, `${job.progress.length} values were sent`);
      },
    );

    workerTest('a cancelled job has its signal aborted, sends nothing, and frees its slot', async () => {
      const began = Promise.withResolvers<AbortSignal>();
      const [job, next] = [fixture.server.submit({ wait: true }), fixture.server.submit({})];
      fixture.start(async (taken, { signal, progress }) => {
        if ((taken.input as { wait?: boolean }).wait !== true) return 'next';
        began.resolve(signal);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        progress('ignored');
        return 'unwanted';
      });
      const signal = await began.promise;
      if (channel === 'public') await fixture.server.waitFor(() => fixture.server.count('job-stop') > 0);
      fixture.server.cancel(job);
      assert.deepEqual((await fixture.server.result(next)).body, { output: 'next' });
      assert.equal((signal.reason as DOMException).name, 'AbortError');
      assert.deepEqual([job.results, job.progress], [[], []]);
      assert.equal(
        fixture.server.received.filter(
          ({ operation, text, headers }) =>
            (operation === 'D' && text.startsWith(`${job.id} `)) ||
            (operation === 'job-done' && headers['x-request-id'] === job.id),
        ).length,
        0,
      );
    });

    workerTest('a cancelled handler that ignores the signal loses its slot after a while', async () => {
      const began = Promise.withResolvers<void>();
      const [job, next] = [fixture.server.submit({ wait: true }), fixture.server.submit({})];
      fixture.start((taken) => {
        if ((taken.input as { wait?: boolean }).wait !== true) return 'next';
        began.resolve();
        return new Promise(() => undefined);
      });
      await began.promise;
      if (channel === 'public') await fixture.server.waitFor(() => fixture.server.count('job-stop') > 0);
      fixture.server.cancel(job);
      assert.deepEqual((await fixture.server.result(next)).body, { output: 'next' });
    });

    workerTest('a cancelled generator is closed, even if it never awaits', async () => {
      const closed = Promise.withResolvers<void>();
      const job = fixture.server.submit({});
      fixture.start(function* () {
        try {
          for (let n = 0; ; n += 1) yield n;
        } finally {
          closed.resolve();
        }
      });
      await fixture.server.waitFor(
        () => job.chunks.length > 10 && (channel === 'fast' || fixture.server.count('job-stop') > 0),
      );
      fixture.server.cancel(job);
      await closed.promise;
      assert.deepEqual(job.results, []);
    });

    workerTest('a job that is delivered again while it runs is started again', async () => {
      const aborted = Promise.withResolvers<void>();
      const job = fixture.server.submit({});
      let runs = 0;
      fixture.start(
        async (_job, { signal }) => {
          runs += 1;
          if (runs > 1) return runs;
          signal.addEventListener('abort', () => aborted.resolve());
          return await new Promise(() => undefined);
        },
        { concurrency: 2 },
      );
      await fixture.server.waitFor(() => job.state === 'given');
      job.state = 'waiting';
      fixture.server.dispatch();
      assert.deepEqual((await fixture.server.result(job)).body, { output: 2 });
      await aborted.promise;
    });
  });
}
