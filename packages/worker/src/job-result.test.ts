import assert from 'node:assert/strict';
import { setTimeout as after } from 'node:timers/promises';
import { describe, test } from 'node:test';
import type { Context, Handler, Job } from './handler.ts';
import { WorkerFixture } from '../../testing/src/worker-sdk/worker-fixture.ts';
import { VERSION } from './version.ts';

function deepValue(depth: number): unknown {
  return depth === 0 ? 'ü' : { in: deepValue(depth - 1) };
}

function workerTest(name: string, run: () => Promise<void>): void {
  test(name, { timeout: 10_000 }, run);
}

// A worker behaves the same on either transport.
for (const channel of ['public', 'fast'] as const) {
  describe(`a worker on the ${channel} channel`, () => {
    const fixture = new WorkerFixture(channel);

    /** The result of one job, run by its own worker. */
    async function resultOf(handler: Handler): Promise<Record<string, unknown>> {
      const job = fixture.server.submit({});
      fixture.start(handler);
      const { body } = await fixture.server.result(job);
      await fixture.stop();
      return body;
    }

    workerTest('passes the whole job to the handler and returns its value', async () => {
      const job = fixture.server.submit(
        { name: 'Zoë 🦊', list: [1, null, { a: 'b\nc' }] },
        { webhook: 'https://example.com/x', policy: { ttl: 1 }, more: true },
      );
      fixture.start((taken) => taken);
      const { body, transport, isStream } = await fixture.server.result(job);
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

    workerTest('accepts any JSON value, from functions of any kind', async () => {
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

    workerTest('an error key fails the job, and the other keys stay in the output', async () => {
      assert.deepEqual(await resultOf(() => ({ error: { code: 5 }, extra: 1 })), {
        output: { extra: 1 },
        error: { code: 5 },
      });
      assert.deepEqual(await resultOf(() => ({ error: 'no' })), { error: 'no' });
      assert.deepEqual(await resultOf(() => ({ error: null, fine: true })), { output: { fine: true } });
    });

    workerTest('a caught error is reported as if it were thrown', async () => {
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

    workerTest('a thrown error is reported in full', async () => {
      const job = fixture.server.submit({});
      fixture.start(() => {
        throw new RangeError('too far', { cause: new Error('the wind') });
      });
      const { error } = (await fixture.server.result(job)).body;
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

    workerTest('anything can be thrown, also by promises', async () => {
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

    workerTest(
      'even a value that throws when it is read can be thrown, and the next job is run',
      async () => {
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
        const jobs = handlers.map((_, n) => fixture.server.submit(n));
        fixture.start((job, context) =>
          (handlers[job.input as number] as [Handler, RegExp])[0](job, context),
        );
        await Promise.all(jobs.map((job) => fixture.server.result(job)));
      },
    );

    workerTest('an output that JSON cannot represent fails the job instead of losing it', async () => {
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

    workerTest('streams what a generator yields, in order, and ends with an empty list', async () => {
      const job = fixture.server.submit({ n: 200 });
      fixture.start(async function* (taken) {
        for (let n = 0; n < (taken.input as { n: number }).n; n += 1) {
          if (n % 50 === 0) await after(1);
          yield n;
        }
      });
      const { body, isStream } = await fixture.server.result(job);
      assert.deepEqual(body, { output: [] });
      assert.deepEqual(
        job.chunks,
        Array.from({ length: 200 }, (_, n) => n),
      );
      if (channel === 'public') assert.equal(isStream, true);
    });

    workerTest('the output is the list of all chunks with that option', async () => {
      const job = fixture.server.submit({});
      fixture.start(
        function* () {
          const part = { text: 'ä' };
          yield part;
          part.text = 'changed later';
          yield null;
          yield [1];
        },
        { aggregate: true },
      );
      assert.deepEqual((await fixture.server.result(job)).body, { output: [{ text: 'ä' }, null, [1]] });
      assert.deepEqual(job.chunks, [{ text: 'ä' }, null, [1]]);
    });

    workerTest('streams the iterable or web stream that an async function returns', async () => {
      const job = fixture.server.submit({});
      fixture.start(
        async () => await Promise.resolve(new Blob(['one']).stream().pipeThrough(new TextDecoderStream())),
      );
      assert.deepEqual((await fixture.server.result(job)).body, { output: [] });
      assert.deepEqual(job.chunks, ['one']);
    });

    workerTest('chunks of a megabyte arrive whole', async () => {
      const job = fixture.server.submit({});
      const big = '🦊é\u2028"\\'.repeat(120_000);
      fixture.start(
        function* () {
          for (let n = 0; n < 5; n += 1) yield n + big;
        },
        { aggregate: true },
      );
      const expected = Array.from({ length: 5 }, (_, n) => n + big);
      const { body } = await fixture.server.result(job);
      assert.ok(expected.every((chunk, n) => job.chunks[n] === chunk));
      assert.deepEqual([(body['output'] as string[]).length, job.chunks.length], [5, 5]);
    });

    workerTest('an input of megabytes arrives whole', async () => {
      const text = 'aé🦊'.repeat(500_000);
      const job = fixture.server.submit({ text });
      fixture.start((taken: Job) => (taken.input as { text: string }).text === text);
      assert.deepEqual((await fixture.server.result(job)).body, { output: true });
    });

    workerTest(
      'a generator that throws, yields an error or an unserializable value fails after its chunks',
      async () => {
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
          const job = fixture.server.submit({});
          fixture.start(generator);
          const { body } = await fixture.server.result(job);
          await fixture.stop();
          if (typeof error === 'string') assert.deepEqual(body, { error });
          else assert.match(String(body['error']), error);
          assert.deepEqual(job.chunks, [1]);
        }
      },
    );
  });
}
