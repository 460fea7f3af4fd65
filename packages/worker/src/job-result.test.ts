import assert from 'node:assert/strict';
import { setTimeout as after } from 'node:timers/promises';
import { describe, test } from 'node:test';
import type { Context, Handler, Job } from './handler.ts';
import { WorkerFixture } from '../../testing/src/worker-sdk/worker-fixture.ts';
import { VERSION } from './version.ts';

function deepValue(depth: number): unknown {
  return depth === 0 ? 'ü' : { in: deepValue(depth - 1) };
}

function story(name: string, tell: () => Promise<void>): void {
  test(name, { timeout: 10_000 }, tell);
}

// A worker behaves the same whichever way its jobs come.
for (const channel of ['public', 'fast'] as const) {
  describe(`a worker on the ${channel} way`, () => {
    const bench = new WorkerFixture(channel);

    /** What comes of one job, done by a worker of its own. */
    async function resultOf(handler: Handler): Promise<Record<string, unknown>> {
      const job = bench.server.submit({});
      bench.start(handler);
      const { body } = await bench.server.result(job);
      await bench.stop();
      return body;
    }

    story('hands the whole job to the handler and its value back', async () => {
      const job = bench.server.submit(
        { name: 'Zoë 🦊', list: [1, null, { a: 'b\nc' }] },
        { webhook: 'https://example.com/x', policy: { ttl: 1 }, more: true },
      );
      bench.start((taken) => taken);
      const { body, transport, isStream } = await bench.server.result(job);
      assert.deepEqual(body, {
        output: {
          id: job.id,
          input: job.input,
          webhook: 'https://example.com/x',
          policy: { ttl: 1 },
          more: true,
        },
      });
      assert.deepEqual([transport, isStream], channel === 'fast' ? ['channel', undefined] : ['http', false]);
    });

    story('takes any value that JSON has, from functions of any kind', async () => {
      assert.deepEqual(await resultOf(async () => await Promise.resolve([1, 2])), { output: [1, 2] });
      for (const [value, output] of [
        [undefined, null],
        [null, null],
        [false, false],
        ['', ''],
        [0, 0],
        [{}, {}],
        [NaN, null],
        [
          { n: Infinity, d: new Date(0) },
          { n: null, d: '1970-01-01T00:00:00.000Z' },
        ],
        [deepValue(50), deepValue(50)],
      ]) {
        assert.deepEqual(await resultOf(() => value), { output });
      }
    });

    story('an error key fails the job, and the other keys stay in the output', async () => {
      assert.deepEqual(await resultOf(() => ({ error: { code: 5 }, extra: 1 })), {
        output: { extra: 1 },
        error: { code: 5 },
      });
      assert.deepEqual(await resultOf(() => ({ error: 'no' })), { error: 'no' });
      assert.deepEqual(await resultOf(() => ({ error: null, fine: true })), { output: { fine: true } });
    });

    story('an error that was caught is told as if it were thrown', async () => {
      const error = new RangeError('too far');
      const told = (body: Record<string, unknown>) => [
        body['output'],
        (JSON.parse(String(body['error'])) as Record<string, string>)['error_message'],
      ];
      assert.deepEqual(told(await resultOf(() => ({ error, extra: 1 }))), [{ extra: 1 }, 'too far']);
      assert.deepEqual(
        told(
          await resultOf(function* () {
            yield { error };
          }),
        ),
        [undefined, 'too far'],
      );
    });

    story('what is thrown is told in full', async () => {
      const job = bench.server.submit({});
      bench.start(() => {
        throw new RangeError('too far', { cause: new Error('the wind') });
      });
      const { error } = (await bench.server.result(job)).body;
      const told = JSON.parse(String(error)) as Record<string, string>;
      assert.deepEqual(
        { ...told, error_traceback: '' },
        {
          error_type: 'RangeError',
          error_message: 'too far',
          error_traceback: '',
          hostname: 'worker-1-host',
          worker_id: 'worker-1',
          berth_version: VERSION,
        },
      );
      assert.match(
        told['error_traceback'] ?? '',
        /^RangeError: too far\n {4}at [^]*caused by Error: the wind\n/,
      );
    });

    story('anything can be thrown, also by promises', async () => {
      for (const [thrown, type, message] of [
        ['plain text', 'string', 'plain text'],
        [null, 'null', 'null'],
        [Object.create(null), 'object', '[object Object]'],
        [new TypeError('t'), 'TypeError', 't'],
      ] as const) {
        const { error } = await resultOf(() => Promise.reject(thrown as Error));
        const told = JSON.parse(String(error)) as Record<string, string>;
        assert.deepEqual([told['error_type'], told['error_message']], [type, message]);
      }
    });

    story('also what cannot even be looked at, and the next job is done', async () => {
      const withStack = (stack: PropertyDescriptor): Error =>
        Object.defineProperty(new Error('odd'), 'stack', stack);
      const [thrower, odd] = [
        () => {
          throw new Error('do not look');
        },
        new Error('odd name'),
      ];
      odd.name = Object.create(null) as string;
      const { proxy: revoked, revoke } = Proxy.revocable({}, {});
      revoke();
      const handlers: [Handler, RegExp][] = [
        [
          () => {
            throw odd;
          },
          /odd name/,
        ],
        [
          () => {
            throw withStack({ value: Symbol('s') });
          },
          /odd/,
        ],
        [
          () => {
            throw withStack({ get: thrower });
          },
          /odd/,
        ],
        [
          () => {
            throw revoked as Error;
          },
          /cannot be read/,
        ],
        [() => revoked, /revoked/],
        [() => Promise.resolve([revoked]), /revoked/],
        [
          () => ({
            get then() {
              return thrower();
            },
          }),
          /do not look/,
        ],
        [
          () => ({
            toJSON: () => {
              throw Object.create(null) as Error;
            },
          }),
          /the output cannot be sent as JSON: \[object Object\]/,
        ],
        [
          function* () {
            yield revoked;
          },
          /revoked/,
        ],
      ];
      for (const [handler, message] of handlers) {
        for (const kind of [handler, async (job: Job, context: Context) => await handler(job, context)]) {
          const told = JSON.parse(String((await resultOf(kind))['error'])) as Record<string, string>;
          assert.match(told['error_message'] ?? '', message);
        }
      }
      const jobs = handlers.map((_, n) => bench.server.submit(n));
      bench.start((job, context) => (handlers[job.input as number] as [Handler, RegExp])[0](job, context));
      await Promise.all(jobs.map((job) => bench.server.result(job)));
    });

    story('an output without a form in JSON fails the job instead of losing it', async () => {
      const circular: Record<string, unknown> = {};
      circular['self'] = circular;
      for (const [value, message] of [
        [{ n: 10n }, /BigInt/],
        [circular, /circular/],
        [() => 1, /a function has no form in JSON/],
        [Symbol('s'), /symbol/],
        [
          {
            toJSON: () => {
              throw new Error('shy');
            },
          },
          /shy/,
        ],
      ] as const) {
        const told = JSON.parse(String((await resultOf(() => value))['error'])) as Record<string, string>;
        assert.equal(told['error_type'], 'UnsendableOutput');
        assert.match(told['error_message'] ?? '', message);
      }
    });

    story('streams what a generator yields, in order, and ends with an empty list', async () => {
      const job = bench.server.submit({ n: 200 });
      bench.start(async function* (taken) {
        for (let n = 0; n < (taken.input as { n: number }).n; n += 1) {
          if (n % 50 === 0) await after(1);
          yield n;
        }
      });
      const { body, isStream } = await bench.server.result(job);
      assert.deepEqual(body, { output: [] });
      assert.deepEqual(
        job.chunks,
        Array.from({ length: 200 }, (_, n) => n),
      );
      if (channel === 'public') assert.equal(isStream, true);
    });

    story('the output is the list of all chunks where that is asked for', async () => {
      const job = bench.server.submit({});
      bench.start(
        function* () {
          const part = { text: 'ä' };
          yield part;
          part.text = 'changed later';
          yield null;
          yield [1];
        },
        { aggregate: true },
      );
      assert.deepEqual((await bench.server.result(job)).body, { output: [{ text: 'ä' }, null, [1]] });
      assert.deepEqual(job.chunks, [{ text: 'ä' }, null, [1]]);
    });

    story('streams what an async function or a stream of the platform gives', async () => {
      const job = bench.server.submit({});
      bench.start(
        async () => await Promise.resolve(new Blob(['one']).stream().pipeThrough(new TextDecoderStream())),
      );
      assert.deepEqual((await bench.server.result(job)).body, { output: [] });
      assert.deepEqual(job.chunks, ['one']);
    });

    story('chunks of a megabyte arrive whole', async () => {
      const job = bench.server.submit({});
      const big = '🦊é\u2028"\\'.repeat(120_000);
      bench.start(
        function* () {
          for (let n = 0; n < 5; n += 1) yield n + big;
        },
        { aggregate: true },
      );
      const expected = Array.from({ length: 5 }, (_, n) => n + big);
      const { body } = await bench.server.result(job);
      assert.ok(expected.every((chunk, n) => job.chunks[n] === chunk));
      assert.deepEqual([(body['output'] as string[]).length, job.chunks.length], [5, 5]);
    });

    story('an input of megabytes arrives whole', async () => {
      const text = 'aé🦊'.repeat(500_000);
      const job = bench.server.submit({ text });
      bench.start((taken: Job) => (taken.input as { text: string }).text === text);
      assert.deepEqual((await bench.server.result(job)).body, { output: true });
    });

    story('a generator that throws, yields an error or cannot be sent fails after its chunks', async () => {
      const endings: [() => Generator, RegExp | string][] = [
        [
          function* () {
            yield 1;
            throw new Error('half way');
          },
          /half way/,
        ],
        [
          function* () {
            yield 1;
            yield { error: 'said so' };
            yield 2;
          },
          'said so',
        ],
        [
          function* () {
            yield 1;
            yield new Error('an error');
            yield 2;
          },
          /an error/,
        ],
        [
          function* () {
            try {
              yield 1;
              yield { error: 'said so' };
            } finally {
              throw new Error('while cleaning up');
            }
          },
          'said so',
        ],
        [
          function* () {
            yield 1;
            yield 2n;
          },
          /a chunk cannot be sent as JSON/,
        ],
      ];
      for (const [generator, error] of endings) {
        const job = bench.server.submit({});
        bench.start(generator);
        const { body } = await bench.server.result(job);
        await bench.stop();
        if (typeof error === 'string') assert.deepEqual(body, { error });
        else assert.match(String(body['error']), error);
        assert.deepEqual(job.chunks, [1]);
      }
    });
  });
}
