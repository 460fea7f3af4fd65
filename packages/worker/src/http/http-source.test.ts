import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Handler } from '../handler.ts';
import type { Options } from '../worker-options.ts';
import { DEFAULT_TIMINGS } from '../timings.ts';
import type { Timings } from '../timings.ts';
import { WorkerRuntime } from '../worker-runtime.ts';
import { SHORT_TIMINGS } from '../../../testing/src/worker-sdk/short-timings.ts';
import { CLOSE_CONNECTION, FakePlatform } from '../../../testing/src/worker-sdk/fake-platform.ts';

const LIMIT = { timeout: 15_000 };

describe('the public protocol', () => {
  let server: FakePlatform;
  let shift: WorkerRuntime | undefined;
  let log: string[];

  beforeEach(async () => {
    server = await FakePlatform.start({ channel: false });
    log = [];
  });
  afterEach(async () => {
    shift?.abort();
    await shift?.done;
    await server.stop();
  });

  function start(handler: Handler, options: Options = {}, pace: Timings = SHORT_TIMINGS): WorkerRuntime {
    shift = new WorkerRuntime(
      handler,
      { channel: 'public', env: server.environment(), ...options },
      { timings: pace, pingThread: false, writeLogLine: (line) => log.push(line) },
    );
    return shift;
  }

  /** The times between requests of a kind, in milliseconds. */
  function gaps(what: string): number[] {
    const times = server.received
      .filter((said) => said.operation === what)
      .map(({ receivedAt }) => receivedAt);
    return times.slice(1).map((time, index) => time - (times[index] ?? 0));
  }

  test('never polls in a hot loop, even if every answer is immediate and empty', LIMIT, async () => {
    server.holdsEmptyPolls = false;
    start(() => 1, {}, DEFAULT_TIMINGS);
    await server.waitFor(() => server.count('job-take') === 3 && server.count('job-stop') === 3);
    // Of the two seconds between three polls, one may be lost where the first request is slow to arrive.
    for (const poll of ['job-take', 'job-stop'])
      assert.ok(gaps(poll).reduce((sum, gap) => sum + gap, 0) >= 990, String(gaps(poll)));
  });

  test('treats an answer that is not a job as empty', LIMIT, async () => {
    for (const status of [200, 204, 400]) {
      server.received.length = 0;
      server.fault = (what) => (what === 'job-take' ? status : undefined);
      const worker = start(() => 1, {}, { ...SHORT_TIMINGS, emptyPollDelay: 60 });
      await server.waitFor(() => server.count('job-take') === 6);
      // Summed up: a request that was slow to arrive makes the gap after it short.
      assert.ok(
        gaps('job-take').reduce((sum, gap) => sum + gap, 0) >= 5 * 60 * 0.7,
        String(gaps('job-take')),
      );
      await worker.stop();
    }
  });

  test('pauses after 429 and logs the reason once', LIMIT, async () => {
    server.fault = (what) => (what === 'job-take' || what === 'job-stop' ? 429 : undefined);
    start(() => 1, {}, { ...SHORT_TIMINGS, rateLimitDelay: 150 });
    await server.waitFor(() => server.count('job-take') === 3 && server.count('job-stop') === 3);
    for (const gap of [...gaps('job-take'), ...gaps('job-stop')]) assert.ok(gap >= 140, `${gap} ms`);
    assert.equal(
      log.filter((line) => line.includes('No jobs for now: the server answered 429: it was told to')).length,
      1,
      log.join(''),
    );
    server.fault = () => undefined;
    assert.deepEqual((await server.result(server.submit({}))).body, { output: 1 });
  });

  test('retries after errors with growing pauses', LIMIT, async () => {
    for (const fault of [401, 500, CLOSE_CONNECTION] as const) {
      server.received.length = 0;
      server.fault = (what) => (what === 'job-take' ? fault : undefined);
      start(() => fault, {}, { ...SHORT_TIMINGS, minBackoff: 20, maxBackoff: 1_000 });
      await server.waitFor(() => server.count('job-take') === 5);
      // One of them may be an immediate retry on a new connection.
      const pauses = gaps('job-take')
        .sort((a, b) => b - a)
        .slice(0, 3)
        .reverse();
      pauses.forEach((gap, index) => assert.ok(gap >= 10 * 2 ** index - 2, String(gaps('job-take'))));
      server.fault = () => undefined;
      assert.deepEqual((await server.result(server.submit({}))).body, { output: fault });
      await shift?.stop();
    }
  });

  test('asks for as many jobs as there is room for, one request at a time', LIMIT, async () => {
    const release = Promise.withResolvers<void>();
    start(() => release.promise, { concurrency: 3 });
    const takes = () =>
      server.received
        .filter(({ operation }) => operation.startsWith('job-take'))
        .map(({ operation, query }) => [
          operation,
          query.get('batch_size'),
          query.get('job_in_progress'),
          query.get('gpu'),
        ]);
    await server.waitFor(() => takes().length === 1);
    const first = server.submit({});
    await server.waitFor(() => takes().length === 2);
    server.submit({});
    await server.waitFor(() => takes().length === 3);
    server.submit({});
    await server.waitFor(() => [...server.jobs.values()].every(({ state }) => state === 'given'));
    release.resolve();
    await server.result(first);
    assert.deepEqual(takes().slice(0, 3), [
      ['job-take-batch', '3', '0', 'none'],
      ['job-take-batch', '2', '1', 'none'],
      ['job-take', null, '1', 'none'],
    ]);
  });

  test('runs a list that answers a request for one, and skips entries that are not jobs', LIMIT, async () => {
    start((job) => job.input, { concurrency: 2 });
    const jobs = [server.submit({ n: 1 }), server.submit({ n: 2 })];
    await Promise.all(jobs.map((job) => server.result(job)));
    server.submit({}, { id: 7 });
    await server.waitFor(() => log.some((line) => line.includes('without an id')));
    assert.deepEqual((await server.result(server.submit({ n: 3 }))).body, { output: { n: 3 } });
  });

  test('sends its identity and the job that a request concerns', LIMIT, async () => {
    const job = server.submit({});
    start(() => 'ü');
    await server.result(job);
    const done = server.received.find(({ operation }) => operation === 'job-done');
    assert.equal(done?.headers['x-request-id'], job.id);
    assert.equal(done.headers.authorization, 'key of the worker');
    assert.equal(done.headers['content-type'], 'application/x-www-form-urlencoded');
    assert.match(done.headers['user-agent'] ?? '', /^berth-worker\/\d/);
    assert.deepEqual(
      [done.text, done.query.get('isStream'), done.query.get('gpu')],
      ['{"output":"ü"}', 'false', 'none'],
    );
  });

  test('sends a result until it is accepted', LIMIT, async () => {
    const faults = [500, CLOSE_CONNECTION, 503, 429, CLOSE_CONNECTION, 502, 404] as const;
    let tries = 0;
    server.fault = (what) => {
      if (what !== 'job-done') return undefined;
      tries += 1;
      return faults[tries - 1];
    };
    const job = server.submit({});
    start(() => 'at last');
    assert.deepEqual((await server.result(job)).body, { output: 'at last' });
    assert.equal(tries, faults.length + 1);
  });

  test('a chunk that was not accepted is resent before the next one', LIMIT, async () => {
    let tries = 0;
    server.fault = (what) => {
      if (what !== 'job-stream') return undefined;
      tries += 1;
      return tries % 3 === 0 ? undefined : 500;
    };
    const job = server.submit({});
    start(function* () {
      for (let n = 0; n < 20; n += 1) yield n;
    });
    await server.result(job);
    assert.deepEqual(
      job.chunks,
      Array.from({ length: 20 }, (_, n) => n),
    );
  });

  test('a permanently refused result is dropped, and the next job is taken', LIMIT, async () => {
    server.fault = (what, jobId) => (what === 'job-done' && jobId === 'job-1' ? 403 : undefined);
    const [job, next] = [server.submit({}), server.submit({})];
    start(() => 1, {}, { ...SHORT_TIMINGS, refusedResultRetry: 100 });
    await server.result(next);
    assert.deepEqual(job.results, []);
    assert.ok(
      log.some(
        (line) => line.includes('The result was given up: the server answered 403') && line.includes(job.id),
      ),
    );
  });

  test('a result that is too large fails the job', LIMIT, async () => {
    let first = true;
    server.fault = (what) => {
      if (what !== 'job-done' || !first) return undefined;
      first = false;
      return 413;
    };
    const job = server.submit({});
    start(() => 'x'.repeat(1_000));
    assert.deepEqual((await server.result(job)).body, {
      error: 'the result of 1013 bytes is larger than the server accepts',
    });
  });

  test('the error that replaces such a result is retried too', LIMIT, async () => {
    const faults = [413, 503, CLOSE_CONNECTION, 503] as const;
    server.fault = (what) => (what === 'job-done' ? faults[server.count('job-done') - 1] : undefined);
    const job = server.submit({});
    start(() => 'x'.repeat(1_000));
    assert.deepEqual((await server.result(job)).body, {
      error: 'the result of 1013 bytes is larger than the server accepts',
    });
    assert.equal(server.count('job-done'), 5);
  });

  test(
    'once a chunk is refused permanently, one refusal is enough for later ones, and the job continues',
    LIMIT,
    async () => {
      server.fault = (what) =>
        what !== 'job-stream' || server.received.at(-1)?.text === '{"output":3}' ? undefined : 404;
      const job = server.submit({});
      start(
        function* () {
          for (let n = 1; n <= 5; n += 1) yield n;
        },
        {},
        { ...SHORT_TIMINGS, refusedResultRetry: 100 },
      );
      await server.result(job);
      assert.deepEqual(job.chunks, [3]);
      const tries = [1, 2, 3, 4, 5].map(
        (n) =>
          server.received.filter(
            ({ operation, text }) => operation === 'job-stream' && text === `{"output":${n}}`,
          ).length,
      );
      assert.ok((tries[0] ?? 0) > 1, String(tries));
      assert.deepEqual(tries.slice(1), [1, 1, 1, 1]);
    },
  );

  test('a job whose id is not valid in a header is run like any other', LIMIT, async () => {
    const id = 'job\u20131';
    const [job] = [server.submit({}, { id }), server.submit({})];
    server.jobs.set(encodeURIComponent(id), job);
    start(() => 1);
    assert.deepEqual((await server.result(job)).body, { output: 1 });
    await server.waitFor(() => server.count('job-done') === 2);
  });

  test('a chunk that is too large is dropped and logged', LIMIT, async () => {
    server.fault = (what) => (what === 'job-stream' && server.count('job-stream') === 2 ? 413 : undefined);
    const job = server.submit({});
    start(function* () {
      yield 1;
      yield 'x'.repeat(1_000);
      yield 3;
    });
    await server.result(job);
    assert.deepEqual(job.chunks, [1, 3]);
    const line = log.find((text) =>
      text.includes(
        'A chunk of 1013 bytes is larger than the server accepts and is left out. Yield it in smaller pieces.',
      ),
    );
    assert.ok(line?.includes(job.id));
  });

  test('progress that cannot be sent blocks nothing', LIMIT, async () => {
    server.fault = (what) => (what === 'job-done' && server.count('job-done') === 1 ? 500 : undefined);
    const job = server.submit({});
    start((_job, { progress }) => {
      for (let n = 0; n < 100; n += 1) progress(n);
      return 'done';
    });
    assert.deepEqual((await server.result(job)).body, { output: 'done' });
    assert.deepEqual(
      server.received.filter(({ operation }) => operation === 'job-done').map(({ text }) => text),
      ['{"status":"IN_PROGRESS","output":0}', '{"output":"done"}'],
    );
  });

  test('a job in flight when the worker stops is run', LIMIT, async () => {
    for (let round = 0; round < 20; round += 1) {
      const worker = start(() => round);
      const takes = server.count('job-take');
      await server.waitFor(() => server.count('job-take') > takes);
      const job = server.submit({});
      await worker.stop();
      assert.deepEqual(job.results[0]?.body, { output: round });
    }
  });

  test('a cancelled job whose result is being sent is released', LIMIT, async () => {
    server.fault = (what, jobId) => (what === 'job-done' && jobId === 'job-1' ? 500 : undefined);
    const [job, next] = [server.submit({}), server.submit({})];
    start(() => 1);
    await server.waitFor(() => server.count('job-done') > 1 && server.count('job-stop') > 0);
    server.cancel(job);
    await server.result(next);
    assert.deepEqual(job.results, []);
  });

  test('works without URLs for chunks and pings', LIMIT, async () => {
    const { RUNPOD_WEBHOOK_POST_STREAM: _stream, RUNPOD_WEBHOOK_PING: _ping, ...env } = server.environment();
    const job = server.submit({});
    start(
      function* () {
        yield 1;
      },
      { env, aggregate: true },
    );
    assert.deepEqual((await server.result(job)).body, { output: [1] });
    assert.equal(server.count('ping', 'job-stream'), 0);
  });

  test('an error names a URL that is missing or invalid', () => {
    const { RUNPOD_WEBHOOK_POST_OUTPUT: done, ...env } = server.environment();
    assert.throws(() => start(() => 1, { env }), /RUNPOD_WEBHOOK_POST_OUTPUT is not set/);
    assert.throws(
      () =>
        start(() => 1, {
          env: { ...env, RUNPOD_WEBHOOK_POST_OUTPUT: done, RUNPOD_WEBHOOK_GET_JOB: 'job-take' },
        }),
      /RUNPOD_WEBHOOK_GET_JOB is "job-take"; it has to be an http or https address/,
    );
  });
});
