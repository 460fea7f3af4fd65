import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UnhealthyError } from './fitness-checks.ts';
import { WorkerFixture } from '../../testing/src/worker-sdk/worker-fixture.ts';

function workerTest(name: string, run: () => Promise<void>): void {
  test(name, { timeout: 10_000 }, run);
}

// A worker behaves the same on either transport.
for (const channel of ['public', 'fast'] as const) {
  describe(`a worker on the ${channel} channel`, () => {
    const fixture = new WorkerFixture(channel);

    workerTest('reports a failed check and never takes a job', async () => {
      const checked: string[] = [];
      const job = fixture.server.submit({});
      const worker = fixture.start(() => 1, {
        fitness: [
          () => checked.push('first'),
          async function gpuIsThere() {
            await Promise.resolve();
            throw new Error(`no GPU ${'x'.repeat(300)}`);
          },
          () => checked.push('third'),
        ],
      });
      await assert.rejects(
        worker.done,
        (error) => error instanceof UnhealthyError && error.check === 'gpuIsThere',
      );
      assert.deepEqual([checked, job.state], [['first'], 'waiting']);
      const report = fixture.server.received.find(
        ({ operation }) => operation === 'U' || operation === 'ping',
      );
      const { check, reason } =
        report?.operation === 'U'
          ? (JSON.parse(report.text) as Record<string, string>)
          : Object.fromEntries(report?.query ?? []);
      assert.deepEqual([check, reason?.length, reason?.slice(0, 14)], ['gpuIsThere', 256, 'Error: no GPU ']);
      if (report?.operation === 'ping') assert.equal(report.query.get('status'), 'unhealthy');
    });

    workerTest('runs its checks before the first job is taken', async () => {
      const checking = Promise.withResolvers<void>();
      const job = fixture.server.submit({});
      fixture.start(() => 'fit', { fitness: [() => checking.promise] });
      checking.resolve();
      assert.deepEqual((await fixture.server.result(job)).body, { output: 'fit' });
    });

    workerTest('a result that asks for a new worker is marked so and is the last', async () => {
      const [first, second] = [fixture.server.submit({}), fixture.server.submit({})];
      await fixture.start(() => ({ refresh_worker: true, kept: 1 })).done;
      assert.deepEqual(first.results[0]?.body, { output: { kept: 1 }, stopPod: true });
      assert.equal(second.state, 'waiting');
      await fixture.start(() => ({ refreshWorker: true })).done;
      assert.deepEqual(second.results[0]?.body, { stopPod: true });
    });

    workerTest('a worker that is refreshed after each job runs one, failed or not', async () => {
      const [first, second, third] = [
        fixture.server.submit({}),
        fixture.server.submit({}),
        fixture.server.submit({}),
      ];
      await fixture.start(() => 'one', { refreshWorker: true }).done;
      assert.deepEqual([first.results[0]?.body, second.state], [{ output: 'one', stopPod: true }, 'waiting']);
      await fixture.start(
        () => {
          throw new Error('two');
        },
        { refreshWorker: true },
      ).done;
      assert.equal(second.results[0]?.body['stopPod'], true);
      await fixture.start(
        function* () {
          yield 'three';
        },
        { refreshWorker: true, aggregate: true },
      ).done;
      assert.deepEqual(third.results[0]?.body, { output: ['three'], stopPod: true });
    });

    workerTest('a stop lets running jobs finish and takes no more', async () => {
      const release = Promise.withResolvers<void>();
      const job = fixture.server.submit({});
      const worker = fixture.start(() => release.promise.then(() => 'ended'), { concurrency: 2 });
      await fixture.server.waitFor(() => job.state === 'given');
      const stopped = worker.stop();
      if (channel === 'fast') await fixture.server.waitFor(() => fixture.server.count('Q') > 0);
      else await fixture.server.waitFor(() => fixture.server.held === 1); // only the question about stops is left
      const late = fixture.server.submit({});
      release.resolve();
      await stopped;
      assert.deepEqual([job.results[0]?.body, late.state], [{ output: 'ended' }, 'waiting']);
      await fixture.server.waitFor(() => fixture.server.held === 0 && fixture.server.channels.size === 0);
      await worker.done;
    });

    workerTest('an idle worker stops immediately', async () => {
      const worker = fixture.start(() => 1);
      await fixture.server.waitFor(() => fixture.server.count('job-take', 'T') > 0);
      await worker.stop();
      await fixture.server.waitFor(() => fixture.server.held === 0 && fixture.server.channels.size === 0);
    });

    workerTest('a result arrives when the server is back after an outage', async () => {
      const release = Promise.withResolvers<void>();
      const jobs = [fixture.server.submit({}), fixture.server.submit({})];
      fixture.start(() => release.promise.then(() => 'kept'), { concurrency: 2 });
      await fixture.server.waitFor(() => jobs.every(({ state }) => state === 'given'));
      await fixture.server.stop();
      release.resolve();
      await fixture.server.listen();
      for (const job of jobs) assert.deepEqual((await fixture.server.result(job)).body, { output: 'kept' });
      const next = fixture.server.submit({});
      assert.deepEqual((await fixture.server.result(next)).body, { output: 'kept' });
    });

    workerTest('a stop waits for an unavailable server', async () => {
      const release = Promise.withResolvers<void>();
      const job = fixture.server.submit({});
      const worker = fixture.start(() => release.promise.then(() => 'kept'));
      await fixture.server.waitFor(() => job.state === 'given');
      await fixture.server.stop();
      const stopped = worker.stop();
      release.resolve();
      await fixture.server.listen();
      await stopped;
      assert.deepEqual(job.results[0]?.body, { output: 'kept' });
    });

    workerTest('chunks that are streamed during an outage arrive when the server is back', async () => {
      const release = Promise.withResolvers<void>();
      const job = fixture.server.submit({});
      fixture.start(async function* () {
        yield 1;
        await release.promise;
        for (let n = 2; n <= 40; n += 1) yield n;
      });
      await fixture.server.waitFor(() => job.chunks.length === 1);
      fixture.server.fault = (what) => (what === 'job-channel' || what === 'job-stream' ? 503 : undefined);
      for (const connection of fixture.server.channels) connection.destroy();
      if (channel === 'public') release.resolve();
      const tries = fixture.server.count('job-channel', 'job-stream');
      await fixture.server.waitFor(() => fixture.server.count('job-channel', 'job-stream') > tries + 1);
      release.resolve();
      fixture.server.fault = () => undefined;
      await fixture.server.result(job);
      assert.deepEqual(
        job.chunks,
        Array.from({ length: 40 }, (_, n) => n + 1),
      );
    });

    workerTest('lists the jobs that it holds in every ping', async () => {
      const release = Promise.withResolvers<void>();
      const jobs = [fixture.server.submit({}), fixture.server.submit({})];
      fixture.start(() => release.promise, {
        concurrency: 2,
        env: fixture.server.environment({ RUNPOD_PING_INTERVAL: '100' }),
      });
      const both = `${jobs[0]?.id},${jobs[1]?.id}`;
      await fixture.server.waitFor(() =>
        fixture.server.received.some(({ operation, query, text }) =>
          operation === 'ping' ? query.get('job_id') === both : operation === 'L' && text === both,
        ),
      );
      release.resolve();
      await Promise.all(jobs.map((job) => fixture.server.result(job)));
      const pings = fixture.server.count('ping', 'L');
      await fixture.server.waitFor(() => fixture.server.count('ping', 'L') > pings + 1);
      const last = fixture.server.received.findLast(
        ({ operation }) => operation === 'ping' || operation === 'L',
      );
      assert.ok(last?.operation === 'ping' ? !last.query.has('job_id') : last?.text === '');
    });
  });
}
