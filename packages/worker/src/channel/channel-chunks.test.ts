import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { seededNumbers, seed } from '../../../testing/src/property-testing.ts';
import type { Handler } from '../handler.ts';
import type { Options } from '../worker-options.ts';
import type { Timings } from '../timings.ts';
import { nextEventLoopTurn } from '../delay.ts';
import { WorkerRuntime } from '../worker-runtime.ts';
import { SHORT_TIMINGS } from '../../../testing/src/worker-sdk/short-timings.ts';
import { CLOSE_CONNECTION, FakePlatform } from '../../../testing/src/worker-sdk/fake-platform.ts';
import { MAX_UNACKNOWLEDGED_LENGTH } from './unacknowledged-chunks.ts';
import type { FakeJob } from '../../../testing/src/worker-sdk/fake-job.ts';

const LIMIT = { timeout: 20_000 };

describe('chunks on the channel', () => {
  let server: FakePlatform;
  let shift: WorkerRuntime | undefined;

  beforeEach(async () => {
    server = await FakePlatform.start({ channel: true });
    server.acknowledgesNumberedChunks = true;
  });
  afterEach(async () => {
    shift?.abort();
    await shift?.done;
    await server.stop();
  });

  function start(handler: Handler, options: Options = {}, pace: Timings = SHORT_TIMINGS): WorkerRuntime {
    shift = new WorkerRuntime(
      handler,
      { channel: 'fast', env: server.environment(), ...options },
      { timings: pace, pingThread: false, writeLogLine: () => undefined },
    );
    return shift;
  }

  function breakAll(): void {
    for (const channel of server.channels) channel.destroy();
  }

  /** The lines about chunks, and where each connection starts. */
  function lines(): string[] {
    return server.received.flatMap(({ operation, text }) =>
      operation === 'job-channel'
        ? ['(opens)']
        : operation === 'S' || operation === 'D'
          ? [`${operation} ${text}`]
          : [],
    );
  }

  function counted(to: number): number[] {
    return Array.from({ length: to }, (_, index) => index);
  }

  /** Polls until nothing has changed for a while. */
  async function still(look: () => number): Promise<number> {
    const seen: number[] = [];
    while (seen.length < 100 || seen.at(-1) !== seen.at(-100)) {
      await nextEventLoopTurn();
      seen.push(look());
    }
    return look();
  }

  test('are numbered from 1 for each job', LIMIT, async () => {
    start(function* () {
      yield 'a';
      yield 'b';
    });
    for (let round = 0; round < 2; round += 1) {
      const job = server.submit({});
      await server.result(job);
      const { id, lease } = job;
      assert.deepEqual(lines().slice(-3), [
        `S ${id} ${lease}~1 {"output":"a"}`,
        `S ${id} ${lease}~2 {"output":"b"}`,
        `D ${id} ${lease} {"output":[]}`,
      ]);
    }
  });

  test(
    'are resent on the next connection, before the result, where they were not acknowledged',
    LIMIT,
    async () => {
      server.acknowledgesChunk = (_job, number) => number <= 2;
      server.acknowledgesResults = false;
      const job = server.submit({});
      start(function* () {
        for (let n = 1; n <= 4; n += 1) yield n;
      });
      await server.result(job);
      const said = lines().length;
      breakAll();
      await server.waitFor(() => server.count('D') === 2);
      const name = `${job.id} ${job.lease}`;
      assert.deepEqual(lines().slice(said), [
        '(opens)',
        `S ${name}~3 {"output":3}`,
        `S ${name}~4 {"output":4}`,
        `D ${name} {"output":[]}`,
      ]);
      assert.deepEqual(job.chunks, [1, 2, 3, 4]);
      // Late acknowledgements, in any order, release the chunks.
      server.acknowledgesResults = true;
      for (const channel of server.channels) channel.send(`K ${name} 4`);
      breakAll();
      await server.waitFor(() => server.count('D') === 3);
      assert.ok(server.count('S') <= 8);
    },
  );

  test('of a job whose result was acknowledged are dropped', LIMIT, async () => {
    server.acknowledgesChunk = () => false;
    const job = server.submit({});
    start(function* () {
      yield 1;
    });
    await server.result(job);
    await server.result(server.submit({}));
    breakAll();
    await server.waitFor(() => server.channels.size === 0);
    await server.waitFor(() => server.channels.size === 1 && server.received.at(-1)?.operation === 'T');
    assert.deepEqual(lines().at(-1), '(opens)');
  });

  test('of a cancelled job are dropped, and waiting handlers continue', LIMIT, async () => {
    server.acknowledgesChunk = () => false;
    const job = server.submit({});
    let ended = false;
    start(
      async function* (_job, { signal }) {
        try {
          while (!signal.aborted) yield 'x'.repeat(1_000_000);
        } finally {
          ended = true;
        }
      },
      { concurrency: 2 },
    );
    await server.waitFor(() => job.chunks.length >= MAX_UNACKNOWLEDGED_LENGTH / 1_000_000);
    server.cancel(job);
    server.acknowledgesChunk = () => true;
    const next = server.submit({});
    await server.waitFor(() => ended && next.chunks.length > 50);
    server.cancel(next);
  });

  test(
    'that are never acknowledged make the generator wait, also across broken connections',
    LIMIT,
    async () => {
      let made = 0;
      let acknowledged = 0;
      server.acknowledgesChunk = (_job, number) => number <= acknowledged;
      const job = server.submit({});
      start(function* () {
        for (; made < 2_000; made += 1) yield 'x'.repeat(100_000);
      });
      await server.waitFor(() => job.chunks.length >= 80);
      const most = MAX_UNACKNOWLEDGED_LENGTH / 100_000 + 2;
      for (let round = 0; round < 2; round += 1) {
        assert.ok(
          (await still(() => made)) <= most + round,
          `${made} were made of which none was acknowledged`,
        );
        const connections = server.count('job-channel');
        breakAll();
        await server.waitFor(() => server.count('job-channel') > connections && server.channels.size === 1);
      }
      const before = await still(() => made);
      acknowledged = Infinity;
      for (const channel of server.channels) channel.send(`K ${job.id} ${job.lease} 40`);
      await server.waitFor(() => job.chunks.length > before + 30);
      server.cancel(job);
    },
  );

  test('a connection on which they are not acknowledged in time is closed', LIMIT, async () => {
    server.acknowledgesChunk = () => false;
    const job = server.submit({});
    const release = Promise.withResolvers<void>();
    start(
      async function* () {
        yield 1;
        await release.promise;
      },
      { env: server.environment({ RUNPOD_PING_INTERVAL: '100' }) },
      { ...SHORT_TIMINGS, deadConnectionTimeout: 150 },
    );
    await server.waitFor(() => server.count('job-channel') === 2 && server.count('S') === 2);
    release.resolve();
    await server.result(job);
    assert.deepEqual(job.chunks, [1]);
  });

  test('one that breaks every connection goes over HTTP, with those before and after it', LIMIT, async () => {
    server.maxLineLength = 5_000;
    const job = server.submit({});
    start(function* () {
      for (const size of [1, 2, 10_000, 3, 4]) yield 'x'.repeat(size);
    });
    assert.equal((await server.result(job)).transport, 'http');
    assert.deepEqual(
      job.chunks.map((chunk) => String(chunk).length),
      [1, 2, 10_000, 3, 4],
    );
    const chunkIds = server.received.flatMap(({ operation, headers }) =>
      operation === 'job-stream' ? [headers['berth-chunk']] : [],
    );
    assert.deepEqual(
      chunkIds,
      [3, 4, 5].map((number) => `${job.lease}~${number}`),
    );
  });

  test('go over HTTP with their numbers where the channel is no longer offered', LIMIT, async () => {
    server.acknowledgesChunk = (_job, number) => number <= 2;
    const job = server.submit({});
    const release = Promise.withResolvers<void>();
    start(
      async function* () {
        for (let n = 1; n <= 4; n += 1) yield n;
        await release.promise;
        yield 5;
      },
      { channel: 'auto' },
    );
    await server.waitFor(() => job.chunks.length === 4);
    let lost = false;
    server.fault = (what) => {
      if (what === 'job-channel') return 404;
      if (what !== 'job-stream' || lost) return undefined;
      // The first post fails after part of it may have been stored.
      lost = true;
      return CLOSE_CONNECTION;
    };
    breakAll();
    await server.waitFor(() => server.count('job-stream') >= 3);
    release.resolve();
    assert.equal((await server.result(job)).transport, 'http');
    assert.deepEqual(job.chunks, [1, 2, 3, 4, 5]);
    const chunkIds = server.received.flatMap(({ operation, headers }) =>
      operation === 'job-stream' ? [String(headers['berth-chunk'])] : [],
    );
    assert.deepEqual(new Set(chunkIds), new Set([3, 4, 5].map((number) => `${job.lease}~${number}`)));
  });

  test(
    'have no numbers on a server without support, nor later for a job whose chunks it already got',
    LIMIT,
    async () => {
      server.acknowledgesNumberedChunks = false;
      const [old, next] = [server.submit('old'), server.submit('new')];
      const release = Promise.withResolvers<void>();
      start(
        async function* (job) {
          if (job.input === 'old') yield 1;
          await release.promise;
          yield 2;
        },
        { concurrency: 2 },
      );
      await server.waitFor(() => old.chunks.length === 1);
      server.acknowledgesNumberedChunks = true;
      breakAll();
      await server.waitFor(() => server.channels.size === 1 && server.count('job-channel') === 2);
      release.resolve();
      await Promise.all([server.result(old), server.result(next)]);
      assert.deepEqual(
        lines()
          .filter((line) => line.startsWith('S'))
          .toSorted(),
        [
          `S ${old.id} ${old.lease} {"output":1}`,
          `S ${old.id} ${old.lease} {"output":2}`,
          `S ${next.id} ${next.lease}~1 {"output":2}`,
        ].toSorted(),
      );
    },
  );

  test(
    'that were not acknowledged are sent once, unnumbered, to a server without support for numbers',
    LIMIT,
    async () => {
      server.acknowledgesChunk = (_job, number) => number <= 1;
      const job = server.submit({});
      const release = Promise.withResolvers<void>();
      start(async function* () {
        for (let n = 1; n <= 3; n += 1) yield n;
        await release.promise;
        yield 4;
      });
      await server.waitFor(() => job.chunks.length === 3);
      const said = lines().length;
      for (const keepsChunks of [false, true]) {
        server.acknowledgesNumberedChunks = keepsChunks;
        const connections = server.count('job-channel');
        breakAll();
        await server.waitFor(() => server.count('job-channel') > connections && server.channels.size === 1);
      }
      release.resolve();
      await server.result(job);
      const name = `${job.id} ${job.lease}`;
      assert.deepEqual(lines().slice(said), [
        '(opens)',
        `S ${name} {"output":2}`,
        `S ${name} {"output":3}`,
        '(opens)',
        `S ${name} {"output":4}`,
        `D ${name} {"output":[]}`,
      ]);
    },
  );

  test('survives malformed acknowledgements', LIMIT, async () => {
    const job = server.submit({});
    const release = Promise.withResolvers<void>();
    server.acknowledgesChunk = () => false;
    start(async function* () {
      yield 1;
      yield 2;
      await release.promise;
    });
    await server.waitFor(() => job.chunks.length === 2);
    for (const channel of server.channels)
      for (const rest of [
        '',
        ' ',
        ` ${job.id}`,
        ` ${job.id} ${job.lease}`,
        ` ${job.id} ${job.lease} x`,
        ` ${job.id} ${job.lease} -1`,
        ` ${job.id} ${job.lease} 0`,
        ` ${job.id} ${job.lease} 1.5`,
        ' nobody x 7',
        ` ${job.id} other 2`,
      ])
        channel.send(`K${rest}`);
    const said = lines().length;
    breakAll();
    await server.waitFor(() => server.count('S') === 4);
    assert.equal(lines().slice(said).length, 3);
    release.resolve();
    await server.result(job);
  });

  test(`thousands arrive once and in order, wherever connections are cut (seed ${seed})`, {
    timeout: 60_000,
  }, async () => {
    const random = seededNumbers();
    const each = 3_000;
    const jobs: FakeJob[] = Array.from({ length: 4 }, () => server.submit({}));
    // Some acknowledgements are not sent or are lost with their connection.
    let heard = 0;
    server.acknowledgesChunk = () => {
      heard += 1;
      return random() < 0.2;
    };
    start(
      async function* () {
        for (let n = 0; n < each; n += 1) {
          if (n % 50 === 0) await nextEventLoopTurn();
          yield n;
        }
      },
      { concurrency: 3 },
    );
    let next = 0;
    while (jobs.some(({ state }) => state !== 'ended')) {
      next += Math.floor(random() * 1_500);
      await server.waitFor(
        () => jobs.every(({ state }) => state === 'ended') || (heard >= next && server.channels.size > 0),
      );
      breakAll();
    }
    for (const job of jobs) assert.deepEqual(job.chunks, counted(each));
  });
});
