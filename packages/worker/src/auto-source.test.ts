import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Handler } from './handler.ts';
import type { Options } from './worker-options.ts';
import type { Timings } from './timings.ts';
import { WorkerRuntime } from './worker-runtime.ts';
import { SHORT_TIMINGS } from '../../testing/src/worker-sdk/short-timings.ts';
import { CLOSE_CONNECTION, NO_RESPONSE, FakePlatform } from '../../testing/src/worker-sdk/fake-platform.ts';

const LIMIT = { timeout: 15_000 };

describe('automatic choice of the transport', () => {
  let server: FakePlatform;
  let shift: WorkerRuntime | undefined;

  beforeEach(async () => {
    server = await FakePlatform.start({ channel: true });
  });
  afterEach(async () => {
    shift?.abort();
    await shift?.done;
    await server.stop();
  });

  function start(handler: Handler, options: Options = {}, pace: Timings = SHORT_TIMINGS): WorkerRuntime {
    shift = new WorkerRuntime(
      handler,
      { env: server.environment(), ...options },
      { timings: pace, pingThread: false, writeLogLine: () => undefined },
    );
    return shift;
  }

  async function wayOf(input: unknown = {}): Promise<string> {
    return (await server.result(server.submit(input))).transport;
  }

  test('is the channel where the server offers it', LIMIT, async () => {
    start(() => 1);
    assert.equal(await wayOf(), 'channel');
    assert.equal(server.count('job-take', 'job-stop', 'job-done', 'ping'), 0);
  });

  test('is the public protocol where there is no channel, and stays so', LIMIT, async () => {
    server.offersChannel = false;
    start(() => 1);
    for (let n = 0; n < 3; n += 1) assert.equal(await wayOf(), 'http');
    await server.waitFor(() => server.count('job-stop', 'ping') >= 2);
    assert.equal(server.count('job-channel'), 1);
  });

  test(
    'is the public protocol where the upgrade is not answered or the connection closed',
    LIMIT,
    async () => {
      for (const fault of [NO_RESPONSE, CLOSE_CONNECTION] as const) {
        server.fault = (what) => (what === 'job-channel' ? fault : undefined);
        const worker = start(
          () => 1,
          {},
          { ...SHORT_TIMINGS, upgradeTimeout: 50, upgradeRetryDelay: 60_000 },
        );
        assert.equal(await wayOf(), 'http');
        await worker.stop();
      }
    },
  );

  test(
    'is the public protocol where every channel breaks before the server sends anything',
    LIMIT,
    async () => {
      void server.waitFor(() => {
        for (const channel of server.channels) channel.destroy();
        return false;
      });
      start(() => 1, {}, { ...SHORT_TIMINGS, upgradeRetryDelay: 60_000 });
      await server.waitFor(() => server.count('job-take') > 0);
      assert.equal(await wayOf(), 'http');
      assert.equal(server.count('job-channel'), 3);
    },
  );

  test('waits for a server that is not there yet', LIMIT, async () => {
    const env = server.environment();
    await server.stop();
    start(() => 1, { env });
    const job = server.submit({});
    await server.listen();
    assert.equal((await server.result(job)).transport, 'channel');
  });

  test('switches to the channel when it is offered later', LIMIT, async () => {
    server.fault = (what) => (what === 'job-channel' ? 503 : undefined);
    const release = Promise.withResolvers<void>();
    start((job) => (job.input === 'long' ? release.promise : 1), { concurrency: 2 });
    const long = server.submit('long');
    assert.equal(await wayOf(), 'http');
    server.fault = () => undefined;
    await server.waitFor(() => server.channels.size > 0 && server.held === 0);
    assert.equal(server.received.findLast(({ operation }) => operation === 'L')?.text, long.id);
    assert.equal(await wayOf(), 'channel');
    // A result goes back over the transport that its job came by.
    release.resolve();
    assert.equal((await server.result(long)).transport, 'http');
  });

  test(
    'switches to the public protocol when the channel is no longer offered; nothing is lost',
    LIMIT,
    async () => {
      const release = Promise.withResolvers<void>();
      server.acknowledgesResults = false;
      start(
        async function* (job) {
          yield `${job.id} begins`;
          if (job.input === 'quick') return;
          await release.promise;
          for (let n = 0; n < 5; n += 1) yield n;
        },
        { concurrency: 3 },
      );
      const [quick, slow] = [server.submit('quick'), server.submit('slow')];
      await server.waitFor(() => server.count('D') === 1 && slow.chunks.length === 1);
      // The server forgets the result that it has not acknowledged.
      quick.state = 'given';
      quick.results.length = 0;
      server.offersChannel = false;
      for (const channel of server.channels) channel.destroy();
      const { transport, body, isStream } = await server.result(quick);
      assert.deepEqual([transport, body, isStream], ['http', { output: [] }, true]);
      release.resolve();
      assert.equal((await server.result(slow)).transport, 'http');
      assert.deepEqual(slow.chunks, ['job-2 begins', 0, 1, 2, 3, 4]);
      assert.equal(await wayOf('quick'), 'http');
      // And the other way round.
      server.offersChannel = true;
      server.acknowledgesResults = true;
      await server.waitFor(() => server.channels.size > 0 && server.held === 0);
      assert.equal(await wayOf('quick'), 'channel');
    },
  );

  test('a draining worker pings when its channel is refused', LIMIT, async () => {
    const [began, release] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    const handler: Handler = () => {
      began.resolve();
      return release.promise;
    };
    const worker = start(
      handler,
      { env: server.environment({ RUNPOD_PING_INTERVAL: '100' }) },
      { ...SHORT_TIMINGS, upgradeRetryDelay: 60_000 },
    );
    const job = server.submit({});
    await began.promise;
    const stopped = worker.stop();
    await server.waitFor(() => server.count('Q') > 0);
    server.fault = (what) => (what === 'job-channel' ? 502 : undefined);
    for (const channel of server.channels) channel.destroy();
    await server.waitFor(
      () =>
        server.received.filter(
          ({ operation, query }) => operation === 'ping' && query.get('job_id') === job.id,
        ).length > 1,
    );
    assert.equal(server.count('job-take'), 0);
    release.resolve('in peace');
    assert.deepEqual((await server.result(job)).body, { output: 'in peace' });
    await stopped;
    await server.waitFor(() => server.held === 0);
  });

  test(
    'jobs that were being returned are run after all when the channel is refused first',
    LIMIT,
    async () => {
      server.acceptsReturns = true;
      const [began, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const worker = start((job) => {
        if (job.input !== 'long') return 1;
        began.resolve();
        return release.promise;
      });
      do await wayOf();
      while (([...server.channels][0]?.credits ?? 0) <= 5);
      const jobs = ['long', 'a', 'b', 'c'].map((input) => server.submit(input));
      await began.promise;
      // Prefetched jobs are returned at a stop, and the connection breaks before the server reads them.
      const stopped = worker.stop();
      server.offersChannel = false;
      for (const channel of server.channels) channel.destroy();
      await server.waitFor(() => server.count('job-stop') > 0);
      release.resolve();
      for (const job of jobs) assert.equal((await server.result(job)).transport, 'http');
      await stopped;
      assert.ok(jobs.every(({ timesTaken }) => timesTaken === 1));
    },
  );

  test('a stop during the switch of transports stops both', LIMIT, async () => {
    server.fault = (what) => (what === 'job-channel' ? 503 : undefined);
    const worker = start(() => 1);
    await wayOf();
    await worker.stop();
    await server.waitFor(() => server.held === 0);
  });

  test('a failed check is reported by ping where there is no channel', LIMIT, async () => {
    server.offersChannel = false;
    const worker = start(() => 1, { fitness: [() => Promise.reject(new Error('cold'))] });
    shift = undefined;
    await assert.rejects(worker.done, /the fitness check check 1 failed: Error: cold/);
    assert.equal(
      server.received.find(({ operation }) => operation === 'ping')?.query.get('check'),
      'check 1',
    );
  });
});
