import assert from 'node:assert/strict';
import { setTimeout as after } from 'node:timers/promises';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Context, Handler, Job } from './handler.ts';
import { UnhealthyError } from './fitness.ts';
import type { Options } from './options.ts';
import { Shift } from './shift.ts';
import { QUICK_PACE } from './test-server/quick-pace.ts';
import { TestServer } from './test-server/test-server.ts';
import { VERSION } from './version.ts';

/** A promise and the way to end it. */
function gate<T = void>() {
  return Promise.withResolvers<T>();
}

function deepValue(depth: number): unknown {
  return depth === 0 ? 'ü' : { in: deepValue(depth - 1) };
}

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

    /** What comes of one job, done by a worker of its own. */
    async function resultOf(handler: Handler): Promise<Record<string, unknown>> {
      const job = server.submit({});
      start(handler);
      const { body } = await server.result(job);
      await end();
      return body;
    }

    story('hands the whole job to the handler and its value back', async () => {
      const job = server.submit({ name: 'Zoë 🦊', list: [1, null, { a: 'b\nc' }] }, { webhook: 'https://example.com/x', policy: { ttl: 1 }, more: true });
      start((taken) => taken);
      const { body, way, isStream } = await server.result(job);
      assert.deepEqual(body, { output: { id: job.id, input: job.input, webhook: 'https://example.com/x', policy: { ttl: 1 }, more: true } });
      assert.deepEqual([way, isStream], channel === 'fast' ? ['channel', undefined] : ['http', false]);
    });

    story('takes any value that JSON has, from functions of any kind', async () => {
      assert.deepEqual(await resultOf(async () => await Promise.resolve([1, 2])), { output: [1, 2] });
      for (const [value, output] of [[undefined, null], [null, null], [false, false], ['', ''], [0, 0], [{}, {}], [NaN, null], [{ n: Infinity, d: new Date(0) }, { n: null, d: '1970-01-01T00:00:00.000Z' }], [deepValue(50), deepValue(50)]]) {
        assert.deepEqual(await resultOf(() => value), { output });
      }
    });

    story('an error key fails the job, and the other keys stay in the output', async () => {
      assert.deepEqual(await resultOf(() => ({ error: { code: 5 }, extra: 1 })), { output: { extra: 1 }, error: { code: 5 } });
      assert.deepEqual(await resultOf(() => ({ error: 'no' })), { error: 'no' });
      assert.deepEqual(await resultOf(() => ({ error: null, fine: true })), { output: { fine: true } });
    });

    story('an error that was caught is told as if it were thrown', async () => {
      const error = new RangeError('too far');
      const told = (body: Record<string, unknown>) => [body['output'], (JSON.parse(String(body['error'])) as Record<string, string>)['error_message']];
      assert.deepEqual(told(await resultOf(() => ({ error, extra: 1 }))), [{ extra: 1 }, 'too far']);
      assert.deepEqual(told(await resultOf(function* () { yield { error }; })), [undefined, 'too far']);
    });

    story('what is thrown is told in full', async () => {
      const job = server.submit({});
      start(() => {
        throw new RangeError('too far', { cause: new Error('the wind') });
      });
      const { error } = (await server.result(job)).body;
      const told = JSON.parse(String(error)) as Record<string, string>;
      assert.deepEqual({ ...told, error_traceback: '' }, { error_type: 'RangeError', error_message: 'too far', error_traceback: '', hostname: 'worker-1-host', worker_id: 'worker-1', berth_version: VERSION });
      assert.match(told['error_traceback'] ?? '', /^RangeError: too far\n {4}at [^]*caused by Error: the wind\n/);
    });

    story('anything can be thrown, also by promises', async () => {
      for (const [thrown, type, message] of [['plain text', 'string', 'plain text'], [null, 'null', 'null'], [Object.create(null), 'object', '[object Object]'], [new TypeError('t'), 'TypeError', 't']] as const) {
        const { error } = await resultOf(() => Promise.reject(thrown as Error));
        const told = JSON.parse(String(error)) as Record<string, string>;
        assert.deepEqual([told['error_type'], told['error_message']], [type, message]);
      }
    });

    story('also what cannot even be looked at, and the next job is done', async () => {
      const withStack = (stack: PropertyDescriptor): Error => Object.defineProperty(new Error('odd'), 'stack', stack);
      const [thrower, odd] = [() => { throw new Error('do not look'); }, new Error('odd name')];
      odd.name = Object.create(null) as string;
      const { proxy: revoked, revoke } = Proxy.revocable({}, {});
      revoke();
      const handlers: [Handler, RegExp][] = [
        [() => { throw odd; }, /odd name/],
        [() => { throw withStack({ value: Symbol('s') }); }, /odd/],
        [() => { throw withStack({ get: thrower }); }, /odd/],
        [() => { throw revoked as Error; }, /cannot be read/],
        [() => revoked, /revoked/],
        [() => Promise.resolve([revoked]), /revoked/],
        [() => ({ get then() { return thrower(); } }), /do not look/],
        [() => ({ toJSON: () => { throw Object.create(null) as Error; } }), /the output cannot be sent as JSON: \[object Object\]/],
        [function* () { yield revoked; }, /revoked/],
      ];
      for (const [handler, message] of handlers) {
        for (const kind of [handler, async (job: Job, context: Context) => await handler(job, context)]) {
          const told = JSON.parse(String((await resultOf(kind))['error'])) as Record<string, string>;
          assert.match(told['error_message'] ?? '', message);
        }
      }
      const jobs = handlers.map((_, n) => server.submit(n));
      start((job, context) => (handlers[job.input as number] as [Handler, RegExp])[0](job, context));
      await Promise.all(jobs.map((job) => server.result(job)));
    });

    story('an output without a form in JSON fails the job instead of losing it', async () => {
      const circular: Record<string, unknown> = {};
      circular['self'] = circular;
      for (const [value, message] of [[{ n: 10n }, /BigInt/], [circular, /circular/], [() => 1, /a function has no form in JSON/], [Symbol('s'), /symbol/], [{ toJSON: () => { throw new Error('shy'); } }, /shy/]] as const) {
        const told = JSON.parse(String((await resultOf(() => value))['error'])) as Record<string, string>;
        assert.equal(told['error_type'], 'UnsendableOutput');
        assert.match(told['error_message'] ?? '', message);
      }
    });

    story('streams what a generator yields, in order, and ends with an empty list', async () => {
      const job = server.submit({ n: 200 });
      start(async function* (taken) {
        for (let n = 0; n < (taken.input as { n: number }).n; n += 1) {
          if (n % 50 === 0) await after(1);
          yield n;
        }
      });
      const { body, isStream } = await server.result(job);
      assert.deepEqual(body, { output: [] });
      assert.deepEqual(job.chunks, Array.from({ length: 200 }, (_, n) => n));
      if (channel === 'public') assert.equal(isStream, true);
    });

    story('the output is the list of all chunks where that is asked for', async () => {
      const job = server.submit({});
      start(
        function* () {
          const part = { text: 'ä' };
          yield part;
          part.text = 'changed later';
          yield null;
          yield [1];
        },
        { aggregate: true },
      );
      assert.deepEqual((await server.result(job)).body, { output: [{ text: 'ä' }, null, [1]] });
      assert.deepEqual(job.chunks, [{ text: 'ä' }, null, [1]]);
    });

    story('streams what an async function or a stream of the platform gives', async () => {
      const job = server.submit({});
      start(async () => await Promise.resolve(new Blob(['one']).stream().pipeThrough(new TextDecoderStream())));
      assert.deepEqual((await server.result(job)).body, { output: [] });
      assert.deepEqual(job.chunks, ['one']);
    });

    story('chunks of a megabyte arrive whole', async () => {
      const job = server.submit({});
      const big = '🦊é\u2028"\\'.repeat(120_000);
      start(
        function* () {
          for (let n = 0; n < 5; n += 1) yield n + big;
        },
        { aggregate: true },
      );
      const expected = Array.from({ length: 5 }, (_, n) => n + big);
      const { body } = await server.result(job);
      assert.ok(expected.every((chunk, n) => job.chunks[n] === chunk));
      assert.deepEqual([(body['output'] as string[]).length, job.chunks.length], [5, 5]);
    });

    story('an input of megabytes arrives whole', async () => {
      const text = 'aé🦊'.repeat(500_000);
      const job = server.submit({ text });
      start((taken: Job) => (taken.input as { text: string }).text === text);
      assert.deepEqual((await server.result(job)).body, { output: true });
    });

    story('a generator that throws, yields an error or cannot be sent fails after its chunks', async () => {
      const endings: [() => Generator, RegExp | string][] = [
        [function* () { yield 1; throw new Error('half way'); }, /half way/],
        [function* () { yield 1; yield { error: 'said so' }; yield 2; }, 'said so'],
        [function* () { yield 1; yield 2n; }, /a chunk cannot be sent as JSON/],
      ];
      for (const [generator, error] of endings) {
        const job = server.submit({});
        start(generator);
        const { body } = await server.result(job);
        await end();
        if (typeof error === 'string') assert.deepEqual(body, { error });
        else assert.match(String(body['error']), error);
        assert.deepEqual(job.chunks, [1]);
      }
    });

    story('runs as many jobs at a time as it may, and takes no more', async () => {
      const release = gate();
      let running = 0;
      let most = 0;
      const jobs = Array.from({ length: 10 }, () => server.submit({}));
      start(
        async () => {
          running += 1;
          most = Math.max(most, running);
          await release.promise;
          running -= 1;
        },
        { concurrency: 3 },
      );
      await server.until(() => jobs.filter(({ state }) => state === 'given').length === 3);
      release.resolve();
      await Promise.all(jobs.map((job) => server.result(job)));
      assert.equal(most, 3);
      assert.ok(jobs.every(({ timesGiven }) => timesGiven === 1));
    });

    story('takes more than it runs where it may prefetch', async () => {
      const [release, bothRun] = [gate(), gate()];
      let running = 0;
      const jobs = Array.from({ length: 6 }, () => server.submit({}));
      start(
        async () => {
          running += 1;
          if (running === 2) bothRun.resolve();
          await release.promise;
        },
        { concurrency: 2, prefetch: 2 },
      );
      await Promise.all([bothRun.promise, server.until(() => jobs.filter(({ state }) => state === 'given').length === 4)]);
      assert.equal(running, 2);
      release.resolve();
      await Promise.all(jobs.map((job) => server.result(job)));
    });

    story('follows a function that says how many', async () => {
      const [release, asked] = [gate(), gate()];
      const answers: (number | Error)[] = [0, 2, new Error('out of order'), -1, 4];
      const told: number[] = [];
      const jobs = Array.from({ length: 5 }, () => server.submit({}));
      start(() => release.promise, {
        concurrency: async (current) => {
          told.push(current);
          if (told.length > answers.length) asked.resolve();
          const answer = answers[Math.min(told.length, answers.length) - 1];
          return answer instanceof Error ? await Promise.reject(answer) : (answer ?? 0);
        },
      });
      await asked.promise;
      assert.deepEqual(told.slice(0, 6), [1, 0, 2, 2, 2, 4]);
      await server.until(() => jobs.filter(({ state }) => state === 'given').length === 4);
      release.resolve();
      await Promise.all(jobs.map((job) => server.result(job)));
    });

    story('takes none while that function says 0', async () => {
      server.takesBack = true;
      let places = 1;
      start((job) => job.input, { concurrency: () => places });
      await server.result(server.submit('before'));
      await server.until(() => (channel === 'fast' ? [...server.channels][0]?.credits === 1 : server.held === 2));
      places = 0;
      // Only the question about stops is left.
      await server.until(() => (channel === 'fast' ? server.count('N') > 0 : server.held === 1));
      const job = server.submit('after');
      assert.equal(job.state, 'waiting');
      places = 1;
      assert.deepEqual((await server.result(job)).body, { output: 'after' });
    });

    story('shows progress while a job runs, and none after', async () => {
      const job = server.submit({});
      const shown = gate();
      let late: Context['progress'] | undefined;
      start(async (_job, { progress }) => {
        late = progress;
        progress({ done: '50 %' });
        await shown.promise;
        assert.throws(() => progress(1n), /progress cannot be sent as JSON/);
        return 'whole';
      });
      await server.until(() => job.progress.length > 0);
      assert.deepEqual([job.progress, job.state], [[{ done: '50 %' }], 'given']);
      shown.resolve();
      assert.deepEqual((await server.result(job)).body, { output: 'whole' });
      late?.('too late');
      await server.result(server.submit({}));
      assert.equal(job.progress.length, 1);
    });

    story('a cancelled job is told so, sends nothing, and makes place', async () => {
      const began = gate<AbortSignal>();
      const [job, next] = [server.submit({ wait: true }), server.submit({})];
      start(async (taken, { signal, progress }) => {
        if ((taken.input as { wait?: boolean }).wait !== true) return 'next';
        began.resolve(signal);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        progress('ignored');
        return 'unwanted';
      });
      const signal = await began.promise;
      if (channel === 'public') await server.until(() => server.count('job-stop') > 0);
      server.cancel(job);
      assert.deepEqual((await server.result(next)).body, { output: 'next' });
      assert.equal((signal.reason as DOMException).name, 'AbortError');
      assert.deepEqual([job.results, job.progress], [[], []]);
      assert.equal(server.said.filter(({ what, text, headers }) => (what === 'D' && text.startsWith(`${job.id} `)) || (what === 'job-done' && headers['x-request-id'] === job.id)).length, 0);
    });

    story('a cancelled handler that does not listen loses its place after a while', async () => {
      const began = gate();
      const [job, next] = [server.submit({ wait: true }), server.submit({})];
      start((taken) => {
        if ((taken.input as { wait?: boolean }).wait !== true) return 'next';
        began.resolve();
        return new Promise(() => undefined);
      });
      await began.promise;
      if (channel === 'public') await server.until(() => server.count('job-stop') > 0);
      server.cancel(job);
      assert.deepEqual((await server.result(next)).body, { output: 'next' });
    });

    story('a cancelled generator is closed, even if it never waits', async () => {
      const closed = gate();
      const job = server.submit({});
      start(function* () {
        try {
          for (let n = 0; ; n += 1) yield n;
        } finally {
          closed.resolve();
        }
      });
      await server.until(() => job.chunks.length > 10 && (channel === 'fast' || server.count('job-stop') > 0));
      server.cancel(job);
      await closed.promise;
      assert.deepEqual(job.results, []);
    });

    story('a job that is given again while it runs is begun anew', async () => {
      const aborted = gate();
      const job = server.submit({});
      let runs = 0;
      start(
        async (_job, { signal }) => {
          runs += 1;
          if (runs > 1) return runs;
          signal.addEventListener('abort', () => aborted.resolve());
          return await new Promise(() => undefined);
        },
        { concurrency: 2 },
      );
      await server.until(() => job.state === 'given');
      job.state = 'waiting';
      server.handOut();
      assert.deepEqual((await server.result(job)).body, { output: 2 });
      await aborted.promise;
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

    story('a thousand jobs are each done once', async () => {
      const jobs = Array.from({ length: 1_000 }, (_, n) => server.submit({ n }));
      start((taken) => (taken.input as { n: number }).n, { concurrency: 100 });
      await Promise.all(jobs.map((job) => server.result(job)));
      assert.ok(jobs.every(({ results, timesGiven }, n) => results[0]?.body['output'] === n && timesGiven === 1));
    });
  });
}
