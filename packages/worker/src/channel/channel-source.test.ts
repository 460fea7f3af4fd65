import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Handler } from '../handler.ts';
import type { Options } from '../worker-options.ts';
import type { Timings } from '../timings.ts';
import { nextEventLoopTurn } from '../delay.ts';
import { WorkerRuntime } from '../worker-runtime.ts';
import { SHORT_TIMINGS } from '../../../testing/src/worker-sdk/short-timings.ts';
import type { FakePlatformChannel } from '../../../testing/src/worker-sdk/fake-platform-channel.ts';
import { FakePlatform } from '../../../testing/src/worker-sdk/fake-platform.ts';
import type { FakeJob } from '../../../testing/src/worker-sdk/fake-job.ts';

const LIMIT = { timeout: 15_000 };

describe('the channel', () => {
  let server: FakePlatform;
  let shift: WorkerRuntime | undefined;
  let log: string[];

  beforeEach(async () => {
    server = await FakePlatform.start({ channel: true });
    log = [];
  });
  afterEach(async () => {
    server.acknowledgesResults = true;
    shift?.abort();
    await shift?.done;
    await server.stop();
  });

  function start(handler: Handler, options: Options = {}, pace: Timings = SHORT_TIMINGS): WorkerRuntime {
    shift = new WorkerRuntime(
      handler,
      { channel: 'fast', env: server.environment(), ...options },
      { timings: pace, pingThread: false, writeLogLine: (line) => log.push(line) },
    );
    return shift;
  }

  async function connection(): Promise<FakePlatformChannel> {
    await server.waitFor(() => server.channels.size === 1 && server.count('T') > 0);
    return [...server.channels][0] as FakePlatformChannel;
  }

  function lines(): string[] {
    return server.received.map(({ operation, text }) =>
      operation === 'job-channel' ? '(opens)' : `${operation} ${text}`,
    );
  }

  test('starts with the held jobs and the credits', LIMIT, async () => {
    start((job) => job.id, { concurrency: 3 });
    await server.waitFor(() => server.count('T') > 0);
    const job = server.submit({});
    await server.waitFor(() => server.count('T') > 1);
    assert.deepEqual(lines(), [
      '(opens)',
      'L ',
      'T 3 3',
      `D ${job.id} ${job.lease} {"output":"${job.id}"}`,
      'T 1 3',
    ]);
    assert.equal(server.received[0]?.headers.authorization, 'key of the worker');
    assert.equal(server.received[0].query.get('gpu'), 'none');
  });

  /**
   * A worker with one slot that has seen enough short jobs to prefetch, and now runs a long one; its jobs.
   */
  async function withJobsTakenAhead(): Promise<{ release: () => void; waiting: FakeJob[] }> {
    server.acceptsReturns = true;
    let release = (): void => undefined;
    const long = new Promise<void>((resolve) => (release = resolve));
    start(async (job) => (job.input === 'long' ? long : undefined));
    // How many it prefetches depends on how long they took, and so on the machine.
    do await server.result(server.submit({}));
    while (([...server.channels][0]?.credits ?? 0) <= 10);
    server.submit('long');
    const waiting = Array.from({ length: 10 }, () => server.submit({}));
    assert.ok(waiting.every(({ state }) => state === 'given'));
    return { release, waiting };
  }

  test('prefetches short jobs, and returns those that a long job keeps from starting', LIMIT, async () => {
    const { release, waiting } = await withJobsTakenAhead();
    await server.waitFor(() => server.count('B') >= waiting.length);
    // The credits are void: returned jobs do not come again while the long job runs.
    await server.waitFor(() => waiting.every(({ state }) => state === 'waiting'));
    assert.equal([...server.channels][0]?.credits, 0);
    release();
    await Promise.all(waiting.map((job) => server.result(job)));
    assert.ok(waiting.every(({ results }) => results.length === 1));
  });

  test('returns unstarted jobs when it stops', LIMIT, async () => {
    const { release, waiting } = await withJobsTakenAhead();
    const stopped = (shift as WorkerRuntime).stop();
    await server.waitFor(() => waiting.every(({ state }) => state === 'waiting'));
    release();
    await stopped;
    assert.ok(waiting.every(({ results }) => results.length === 0));
  });

  test('does not list jobs that it has returned: they may be on their way to it again', LIMIT, async () => {
    server.acknowledgesReturns = false;
    const { release, waiting } = await withJobsTakenAhead();
    await server.waitFor(() => server.count('B') >= waiting.length);
    const said = server.received.length;
    (await connection()).destroy();
    await server.waitFor(() => server.count('B') >= 2 * waiting.length);
    const long = [...server.jobs.values()].find(({ input }) => input === 'long');
    assert.deepEqual(lines().slice(said, said + 2), ['(opens)', `L ${long?.id}`]);
    server.acknowledgesReturns = true;
    (await connection()).destroy();
    release();
    await Promise.all(waiting.map((job) => server.result(job)));
  });

  test('prefetches nothing from a server that does not accept returned jobs', LIMIT, async () => {
    start(() => 1);
    for (let n = 0; n < 80; n += 1) await server.result(server.submit({}));
    assert.ok(server.received.every(({ operation, text }) => operation !== 'T' || text === '1 1'));
  });

  test('writes in batches', LIMIT, async () => {
    start(() => 1, { concurrency: 200 });
    const channel = await connection();
    const before = channel.packets;
    const jobs = Array.from({ length: 200 }, () => server.submit({}));
    await Promise.all(jobs.map((job) => server.result(job)));
    assert.ok(channel.packets - before < 20, `${channel.packets - before} pieces for 200 results`);
    assert.ok(server.count('T') < 20);
  });

  test(
    'keeps a result until it is acknowledged, and sends it again on the next connection',
    LIMIT,
    async () => {
      server.acknowledgesResults = false;
      const job = server.submit({});
      start(() => 'kept', { env: server.environment({ RUNPOD_PING_INTERVAL: '100' }) });
      await server.result(job);
      // Its job is still held, and the next one is taken anyway.
      await server.waitFor(() => lines().at(-1) === `L ${job.id}`);
      assert.deepEqual((await server.result(server.submit({}))).body, { output: 'kept' });
      const said = server.received.length;
      (await connection()).destroy();
      await server.waitFor(
        () =>
          lines()
            .slice(said)
            .filter((line) => line.startsWith('T ')).length > 0,
      );
      assert.deepEqual(lines().slice(said), [
        '(opens)',
        'L job-1,job-2',
        'D job-1 lease-job-1-1 {"output":"kept"}',
        'D job-2 lease-job-2-1 {"output":"kept"}',
        'T 1 1',
      ]);
      assert.equal(job.results.length, 1);

      server.acknowledgesResults = true;
      const stopped = (shift as WorkerRuntime).stop();
      await server.waitFor(() => server.count('Q') > 0);
      (await connection()).destroy();
      await stopped;
      assert.deepEqual(lines().slice(-4), [
        'L job-1,job-2',
        'D job-1 lease-job-1-1 {"output":"kept"}',
        'D job-2 lease-job-2-1 {"output":"kept"}',
        'Q ',
      ]);
    },
  );

  test('a connection on which results are not acknowledged in time is closed', LIMIT, async () => {
    server.acknowledgesResults = false;
    const job = server.submit({});
    start(
      () => 1,
      { env: server.environment({ RUNPOD_PING_INTERVAL: '100' }) },
      { ...SHORT_TIMINGS, deadConnectionTimeout: 150 },
    );
    await server.result(job);
    await server.waitFor(() => server.count('job-channel') === 2 && server.count('D') === 2);
  });

  test('an idle connection on which the server is silent for too long is closed', LIMIT, async () => {
    server.answersHeartbeats = true;
    start(
      () => 1,
      { env: server.environment({ RUNPOD_PING_INTERVAL: '50' }) },
      { ...SHORT_TIMINGS, deadConnectionTimeout: 100 },
    );
    await server.waitFor(() => server.count('L') > 10);
    assert.equal(server.count('job-channel'), 1);
    server.answersHeartbeats = false;
    await server.waitFor(() => server.count('job-channel') > 1);
  });

  test('a result that breaks every connection goes over HTTP', LIMIT, async () => {
    const jobs = [server.submit({}), server.submit('small')];
    start((job) => (job.input === 'small' ? 1 : 'x'.repeat(10_000)), { concurrency: 2 });
    server.maxLineLength = 5_000;
    const [large] = await Promise.all(jobs.map((job) => server.result(job)));
    assert.equal(large?.transport, 'http');
    await server.waitFor(() => server.count('job-channel') === 4);
  });

  test('sends the latest progress that was set while there was no connection', LIMIT, async () => {
    const [go, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const job = server.submit({});
    start(async (_job, { progress }) => {
      await go.promise;
      for (let n = 0; n < 5; n += 1) progress(n);
      await end.promise;
    });
    await server.waitFor(() => job.state === 'given');
    server.fault = (what) => (what === 'job-channel' ? 503 : undefined);
    (await connection()).destroy();
    await server.waitFor(() => server.count('job-channel') > 1);
    go.resolve();
    await nextEventLoopTurn();
    server.fault = () => undefined;
    await server.waitFor(() => job.progress.length > 0);
    end.resolve();
    await server.result(job);
    assert.deepEqual(job.progress, [4]);
  });

  test('leaves a stopping server when its results are acknowledged', LIMIT, async () => {
    const release = Promise.withResolvers<void>();
    const job = server.submit({});
    start(() => release.promise, { concurrency: 2 });
    await server.waitFor(() => job.state === 'given');
    const said = server.received.length;
    (await connection()).send('G');
    await server.waitFor(() => server.count('job-channel') === 2 && lines().at(-1)?.startsWith('T') === true);
    assert.deepEqual(lines().slice(said), ['(opens)', `L ${job.id}`, 'T 1 2']);
    server.acknowledgesResults = false;
    const channel = await connection();
    channel.send('G');
    release.resolve();
    await server.result(job);
    server.acknowledgesResults = true;
    assert.equal(server.channels.has(channel), true);
    channel.send(`A ${job.id} ${job.lease}`);
    await server.waitFor(() => server.count('job-channel') === 3);
    assert.equal(server.count('D'), 1);
  });

  test('backs off from a server that accepts and closes', LIMIT, async () => {
    start(() => 1, {}, { ...SHORT_TIMINGS, minBackoff: 20, maxBackoff: 1_000 });
    for (let round = 1; round <= 4; round += 1) {
      await server.waitFor(() => server.channels.size === 1 && server.count('T') === round);
      for (const channel of server.channels) channel.destroy();
    }
    const times = server.received
      .filter(({ operation }) => operation === 'job-channel')
      .map(({ receivedAt }) => receivedAt);
    times
      .slice(1)
      .forEach((time, index) => assert.ok(time - (times[index] ?? 0) >= 10 * 2 ** index - 2, String(times)));
  });

  test('the same job twice under the same lease is one job', LIMIT, async () => {
    let runs = 0;
    const release = Promise.withResolvers<void>();
    const job = server.submit({});
    start(
      () => {
        runs += 1;
        return release.promise;
      },
      { concurrency: 2 },
    );
    const channel = await connection();
    channel.sendJob(job.id, { id: job.id, input: 1 });
    release.resolve();
    await server.result(job);
    await server.result(server.submit({}));
    assert.equal(runs, 2);
  });

  test('survives lines that it does not understand', LIMIT, async () => {
    start((job) => job.input);
    const channel = await connection();
    for (const line of [
      '',
      'Z',
      'J',
      'J lease',
      'J lease {',
      'J lease {"id":7}',
      'J lease null',
      'A',
      'A nobody',
      'X nobody',
      'A a b c d',
    ])
      channel.send(line);
    assert.deepEqual((await server.result(server.submit('still here'))).body, { output: 'still here' });
  });

  test('lines that are cut anywhere are read whole', LIMIT, async () => {
    start((job) => job.input);
    const channel = await connection();
    const job = server.submit(null);
    await server.result(job);
    job.state = 'given';
    job.results.length = 0;
    const bytes = Buffer.from(`J ${job.lease}x {"id":"${job.id}","input":"Grüße 🦊"}\n`);
    job.lease += 'x';
    for (const byte of bytes) {
      channel.write(Buffer.of(byte));
      await nextEventLoopTurn();
    }
    assert.deepEqual((await server.result(job)).body, { output: 'Grüße 🦊' });
  });

  test('a job in flight when the worker stops is run', LIMIT, async () => {
    for (let round = 0; round < 20; round += 1) {
      const worker = start(() => round);
      await server.waitFor(() => [...server.channels].some(({ credits }) => credits > 0));
      const job = server.submit({});
      await worker.stop();
      assert.deepEqual(job.results[0]?.body, { output: round });
      await server.waitFor(() => server.channels.size === 0);
    }
  });

  test(
    'jobs that come with the last acknowledgement are returned or run, and acknowledged before the worker ends',
    LIMIT,
    async () => {
      server.acceptsReturns = true;
      server.acknowledgesResults = false;
      const worker = start(() => 1);
      const channel = await connection();
      const job = server.submit({});
      await server.result(job);
      const stopped = worker.stop();
      await server.waitFor(() => channel.receivedQuit);
      const late = ['a', 'b', 'c'].map((id) => ({
        ...job,
        id,
        state: 'given' as const,
        lease: 'l',
        results: [],
        chunks: [],
        chunkNumber: 0,
        progress: [],
      }));
      for (const one of late) server.jobs.set(one.id, one);
      server.acknowledgesResults = true;
      channel.write(
        Buffer.from(
          [`A ${job.id} ${job.lease}`, ...late.map(({ id }) => `J l {"id":"${id}","input":1}`), ''].join(
            '\n',
          ),
        ),
      );
      await stopped;
      assert.deepEqual(
        log.filter((line) => line.includes('given up')),
        [],
      );
      assert.ok(late.every(({ state, results }) => (state as string) === 'waiting' || results.length === 1));
    },
  );

  test('a job that arrives after the goodbye line is run; its result goes over HTTP', LIMIT, async () => {
    const worker = start((job) => job.input);
    const channel = await connection();
    const job = server.submit('late', {});
    await server.result(job);
    const late = {
      ...job,
      id: 'job-late',
      state: 'given' as const,
      lease: 'l',
      results: [],
      chunks: [],
      chunkNumber: 0,
      progress: [],
    };
    server.jobs.set('job-late', late);
    server.onWorkerEnd = () => channel.sendJob('job-late', { id: 'job-late', input: 'late' });
    await worker.stop();
    assert.deepEqual(late.results, [{ body: { output: 'late' }, transport: 'http', isStream: false }]);
  });

  test('retries where the server refuses', LIMIT, async () => {
    server.fault = () => 403;
    start(() => 1);
    await server.waitFor(() => server.count('job-channel') === 3);
    server.fault = () => undefined;
    await server.result(server.submit({}));
    assert.deepEqual(
      new Set(server.received.map(({ operation }) => operation)),
      new Set(['job-channel', 'L', 'T', 'D']),
    );
    assert.ok(
      log.some((line) => line.includes('There is no connection to the server: the server answered 403')),
    );
  });

  test('a handler waits while the server does not read its chunks', LIMIT, async () => {
    const job = server.submit({});
    let made = 0;
    const worker = start(function* () {
      for (; made < 2_000; made += 1) yield 'x'.repeat(100_000);
    });
    const channel = await connection();
    await server.waitFor(() => job.chunks.length > 0);
    channel.pause();
    const seen: number[] = [];
    while (seen.length < 50 || seen.at(-1) !== seen.at(-50)) {
      await nextEventLoopTurn();
      seen.push(made);
    }
    assert.ok(made < 1_000, `${made} chunks were made while nobody read`);
    worker.abort();
    channel.resume();
  });
});
