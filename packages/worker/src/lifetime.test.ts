import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Handler } from './handler.ts';
import { UnhealthyError } from './fitness.ts';
import type { Options } from './options.ts';
import { Shift } from './shift.ts';
import { gate } from './test-server/gate.ts';
import { QUICK_PACE } from './test-server/quick-pace.ts';
import { TestServer } from './test-server/test-server.ts';

function story(name: string, tell: () => Promise<void>): void {
  test(name, { timeout: 10_000 }, tell);
}

// A worker behaves the same whichever way its jobs come.
for (const channel of ['public', 'fast'] as const) {
  describe(`a worker on the ${channel} way`, () => {
    let server: TestServer;
    let shift: Shift | undefined;

    beforeEach(async () => {
      server = await TestServer.start({ channel: channel === 'fast' });
      shift = undefined;
    });

    afterEach(async () => {
      await end();
      await server.stop();
    });

    async function end(): Promise<void> {
      shift?.abort();
      await shift?.done.catch((error: unknown) => assert.ok(error instanceof UnhealthyError));
      shift = undefined;
    }

    function start(handler: Handler, options: Options = {}): Shift {
      shift = new Shift(handler, { channel, env: server.environment(), ...options }, { pace: QUICK_PACE, pulse: false, write: () => undefined });
      return shift;
    }

    story('is reported and never takes a job where a check fails', async () => {
      const checked: string[] = [];
      const job = server.submit({});
      const worker = start(() => 1, {
        fitness: [
          () => checked.push('first'),
          async function gpuIsThere() {
            await Promise.resolve();
            throw new Error(`no GPU ${'x'.repeat(300)}`);
          },
          () => checked.push('third'),
        ],
      });
      await assert.rejects(worker.done, (error) => error instanceof UnhealthyError && error.check === 'gpuIsThere');
      assert.deepEqual([checked, job.state], [['first'], 'waiting']);
      const report = server.said.find(({ what }) => what === 'U' || what === 'ping');
      const { check, reason } = report?.what === 'U' ? (JSON.parse(report.text) as Record<string, string>) : Object.fromEntries(report?.query ?? []);
      assert.deepEqual([check, reason?.length, reason?.slice(0, 14)], ['gpuIsThere', 256, 'Error: no GPU ']);
      if (report?.what === 'ping') assert.equal(report.query.get('status'), 'unhealthy');
    });

    story('checks are done before the first job is taken', async () => {
      const checking = gate();
      const job = server.submit({});
      start(() => 'fit', { fitness: [() => checking.promise] });
      checking.resolve();
      assert.deepEqual((await server.result(job)).body, { output: 'fit' });
    });

    story('a result that asks for a new worker says so and is the last', async () => {
      const [first, second] = [server.submit({}), server.submit({})];
      await start(() => ({ refresh_worker: true, kept: 1 })).done;
      assert.deepEqual(first.results[0]?.body, { output: { kept: 1 }, stopPod: true });
      assert.equal(second.state, 'waiting');
      await start(() => ({ refreshWorker: true })).done;
      assert.deepEqual(second.results[0]?.body, { stopPod: true });
    });

    story('a worker that is refreshed after each job does one, failed or not', async () => {
      const [first, second, third] = [server.submit({}), server.submit({}), server.submit({})];
      await start(() => 'one', { refreshWorker: true }).done;
      assert.deepEqual([first.results[0]?.body, second.state], [{ output: 'one', stopPod: true }, 'waiting']);
      await start(() => { throw new Error('two'); }, { refreshWorker: true }).done;
      assert.equal(second.results[0]?.body['stopPod'], true);
      await start(function* () { yield 'three'; }, { refreshWorker: true, aggregate: true }).done;
      assert.deepEqual(third.results[0]?.body, { output: ['three'], stopPod: true });
    });

    story('a stop lets running jobs end and takes no more', async () => {
      const release = gate();
      const job = server.submit({});
      const worker = start(() => release.promise.then(() => 'ended'), { concurrency: 2 });
      await server.until(() => job.state === 'given');
      const stopped = worker.stop();
      if (channel === 'fast') await server.until(() => server.count('Q') > 0);
      else await server.until(() => server.held === 1); // only the question about stops is left
      const late = server.submit({});
      release.resolve();
      await stopped;
      assert.deepEqual([job.results[0]?.body, late.state], [{ output: 'ended' }, 'waiting']);
      await server.until(() => server.held === 0 && server.channels.size === 0);
      await worker.done;
    });

    story('an idle worker stops at once', async () => {
      const worker = start(() => 1);
      await server.until(() => server.count('job-take', 'T') > 0);
      await worker.stop();
      await server.until(() => server.held === 0 && server.channels.size === 0);
    });

    story('a result outlives the server: it arrives when the server is back', async () => {
      const release = gate();
      const jobs = [server.submit({}), server.submit({})];
      start(() => release.promise.then(() => 'kept'), { concurrency: 2 });
      await server.until(() => jobs.every(({ state }) => state === 'given'));
      await server.stop();
      release.resolve();
      await server.listen();
      for (const job of jobs) assert.deepEqual((await server.result(job)).body, { output: 'kept' });
      const next = server.submit({});
      assert.deepEqual((await server.result(next)).body, { output: 'kept' });
    });

    story('a stop waits for a server that is away', async () => {
      const release = gate();
      const job = server.submit({});
      const worker = start(() => release.promise.then(() => 'kept'));
      await server.until(() => job.state === 'given');
      await server.stop();
      const stopped = worker.stop();
      release.resolve();
      await server.listen();
      await stopped;
      assert.deepEqual(job.results[0]?.body, { output: 'kept' });
    });

    story('what is streamed while the server is away arrives when it is back', async () => {
      const release = gate();
      const job = server.submit({});
      start(async function* () {
        yield 1;
        await release.promise;
        for (let n = 2; n <= 40; n += 1) yield n;
      });
      await server.until(() => job.chunks.length === 1);
      server.fault = (what) => (what === 'job-channel' || what === 'job-stream' ? 503 : undefined);
      for (const connection of server.channels) connection.break();
      if (channel === 'public') release.resolve();
      const tries = server.count('job-channel', 'job-stream');
      await server.until(() => server.count('job-channel', 'job-stream') > tries + 1);
      release.resolve();
      server.fault = () => undefined;
      await server.result(job);
      assert.deepEqual(job.chunks, Array.from({ length: 40 }, (_, n) => n + 1));
    });

    story('says what it has in hand at every ping', async () => {
      const release = gate();
      const jobs = [server.submit({}), server.submit({})];
      start(() => release.promise, { concurrency: 2, env: server.environment({ RUNPOD_PING_INTERVAL: '100' }) });
      const both = `${jobs[0]?.id},${jobs[1]?.id}`;
      await server.until(() => server.said.some(({ what, query, text }) => (what === 'ping' ? query.get('job_id') === both : what === 'L' && text === both)));
      release.resolve();
      await Promise.all(jobs.map((job) => server.result(job)));
      const pings = server.count('ping', 'L');
      await server.until(() => server.count('ping', 'L') > pings + 1);
      const last = server.said.findLast(({ what }) => what === 'ping' || what === 'L');
      assert.ok(last?.what === 'ping' ? !last.query.has('job_id') : last?.text === '');
    });
  });
}
