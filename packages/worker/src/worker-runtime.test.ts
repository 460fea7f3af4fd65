import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UnhealthyError } from './fitness-checks.ts';
import { deferred } from '../../testing/src/deferred.ts';
import { WorkerFixture } from '../../testing/src/worker-sdk/worker-fixture.ts';

function story(name: string, tell: () => Promise<void>): void {
  test(name, { timeout: 10_000 }, tell);
}

// A worker behaves the same whichever way its jobs come.
for (const channel of ['public', 'fast'] as const) {
  describe(`a worker on the ${channel} way`, () => {
    const bench = new WorkerFixture(channel);

    story('is reported and never takes a job where a check fails', async () => {
      const checked: string[] = [];
      const job = bench.server.submit({});
      const worker = bench.start(() => 1, {
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
      const report = bench.server.received.find(({ operation }) => operation === 'U' || operation === 'ping');
      const { check, reason } =
        report?.operation === 'U'
          ? (JSON.parse(report.text) as Record<string, string>)
          : Object.fromEntries(report?.query ?? []);
      assert.deepEqual([check, reason?.length, reason?.slice(0, 14)], ['gpuIsThere', 256, 'Error: no GPU ']);
      if (report?.operation === 'ping') assert.equal(report.query.get('status'), 'unhealthy');
    });

    story('checks are done before the first job is taken', async () => {
      const checking = deferred();
      const job = bench.server.submit({});
      bench.start(() => 'fit', { fitness: [() => checking.promise] });
      checking.resolve();
      assert.deepEqual((await bench.server.result(job)).body, { output: 'fit' });
    });

    story('a result that asks for a new worker says so and is the last', async () => {
      const [first, second] = [bench.server.submit({}), bench.server.submit({})];
      await bench.start(() => ({ refresh_worker: true, kept: 1 })).done;
      assert.deepEqual(first.results[0]?.body, { output: { kept: 1 }, stopPod: true });
      assert.equal(second.state, 'waiting');
      await bench.start(() => ({ refreshWorker: true })).done;
      assert.deepEqual(second.results[0]?.body, { stopPod: true });
    });

    story('a worker that is refreshed after each job does one, failed or not', async () => {
      const [first, second, third] = [
        bench.server.submit({}),
        bench.server.submit({}),
        bench.server.submit({}),
      ];
      await bench.start(() => 'one', { refreshWorker: true }).done;
      assert.deepEqual([first.results[0]?.body, second.state], [{ output: 'one', stopPod: true }, 'waiting']);
      await bench.start(
        () => {
          throw new Error('two');
        },
        { refreshWorker: true },
      ).done;
      assert.equal(second.results[0]?.body['stopPod'], true);
      await bench.start(
        function* () {
          yield 'three';
        },
        { refreshWorker: true, aggregate: true },
      ).done;
      assert.deepEqual(third.results[0]?.body, { output: ['three'], stopPod: true });
    });

    story('a stop lets running jobs end and takes no more', async () => {
      const release = deferred();
      const job = bench.server.submit({});
      const worker = bench.start(() => release.promise.then(() => 'ended'), { concurrency: 2 });
      await bench.server.waitFor(() => job.state === 'given');
      const stopped = worker.stop();
      if (channel === 'fast') await bench.server.waitFor(() => bench.server.count('Q') > 0);
      else await bench.server.waitFor(() => bench.server.held === 1); // only the question about stops is left
      const late = bench.server.submit({});
      release.resolve();
      await stopped;
      assert.deepEqual([job.results[0]?.body, late.state], [{ output: 'ended' }, 'waiting']);
      await bench.server.waitFor(() => bench.server.held === 0 && bench.server.channels.size === 0);
      await worker.done;
    });

    story('an idle worker stops at once', async () => {
      const worker = bench.start(() => 1);
      await bench.server.waitFor(() => bench.server.count('job-take', 'T') > 0);
      await worker.stop();
      await bench.server.waitFor(() => bench.server.held === 0 && bench.server.channels.size === 0);
    });

    story('a result outlives the server: it arrives when the server is back', async () => {
      const release = deferred();
      const jobs = [bench.server.submit({}), bench.server.submit({})];
      bench.start(() => release.promise.then(() => 'kept'), { concurrency: 2 });
      await bench.server.waitFor(() => jobs.every(({ state }) => state === 'given'));
      await bench.server.stop();
      release.resolve();
      await bench.server.listen();
      for (const job of jobs) assert.deepEqual((await bench.server.result(job)).body, { output: 'kept' });
      const next = bench.server.submit({});
      assert.deepEqual((await bench.server.result(next)).body, { output: 'kept' });
    });

    story('a stop waits for a server that is away', async () => {
      const release = deferred();
      const job = bench.server.submit({});
      const worker = bench.start(() => release.promise.then(() => 'kept'));
      await bench.server.waitFor(() => job.state === 'given');
      await bench.server.stop();
      const stopped = worker.stop();
      release.resolve();
      await bench.server.listen();
      await stopped;
      assert.deepEqual(job.results[0]?.body, { output: 'kept' });
    });

    story('what is streamed while the server is away arrives when it is back', async () => {
      const release = deferred();
      const job = bench.server.submit({});
      bench.start(async function* () {
        yield 1;
        await release.promise;
        for (let n = 2; n <= 40; n += 1) yield n;
      });
      await bench.server.waitFor(() => job.chunks.length === 1);
      bench.server.fault = (what) => (what === 'job-channel' || what === 'job-stream' ? 503 : undefined);
      for (const connection of bench.server.channels) connection.destroy();
      if (channel === 'public') release.resolve();
      const tries = bench.server.count('job-channel', 'job-stream');
      await bench.server.waitFor(() => bench.server.count('job-channel', 'job-stream') > tries + 1);
      release.resolve();
      bench.server.fault = () => undefined;
      await bench.server.result(job);
      assert.deepEqual(
        job.chunks,
        Array.from({ length: 40 }, (_, n) => n + 1),
      );
    });

    story('says what it has in hand at every ping', async () => {
      const release = deferred();
      const jobs = [bench.server.submit({}), bench.server.submit({})];
      bench.start(() => release.promise, {
        concurrency: 2,
        env: bench.server.environment({ RUNPOD_PING_INTERVAL: '100' }),
      });
      const both = `${jobs[0]?.id},${jobs[1]?.id}`;
      await bench.server.waitFor(() =>
        bench.server.received.some(({ operation, query, text }) =>
          operation === 'ping' ? query.get('job_id') === both : operation === 'L' && text === both,
        ),
      );
      release.resolve();
      await Promise.all(jobs.map((job) => bench.server.result(job)));
      const pings = bench.server.count('ping', 'L');
      await bench.server.waitFor(() => bench.server.count('ping', 'L') > pings + 1);
      const last = bench.server.received.findLast(
        ({ operation }) => operation === 'ping' || operation === 'L',
      );
      assert.ok(last?.operation === 'ping' ? !last.query.has('job_id') : last?.text === '');
    });
  });
}
