import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ApiResponse } from '../../packages/testing/src/api-client.ts';
import { createQueueEndpoint, measureTime } from '../../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../../packages/testing/src/queue-endpoint-client.ts';
import { startPython, workerEnvironment } from '../../packages/testing/src/python-process.ts';
import type { PythonInterpreter, PythonProcess } from '../../packages/testing/src/python-process.ts';
import { serverFixture } from '../../packages/testing/src/server-fixture.ts';
import { waitUntilPasses } from '../../packages/testing/src/wait-for.ts';
import { runPythonForJson } from './python-programs.ts';
import {
  PLAIN,
  CONCURRENT,
  ASYNC,
  REFRESHING,
  GENERATOR,
  AGGREGATING,
  LANGUAGE_MODEL,
  UNHEALTHY,
  CLIENT,
  STREAM_CLIENT,
} from './python-worker-programs.ts';

/** The SDK takes its time to start and, at one job at a time, looks for jobs once a second. */
const PATIENCE_MS = 60_000;
/** Many workers start at the same time here, and each loads much: on a busy machine that takes minutes. */
const STARTED_WITHIN_MS = 180_000;
/** A result that never comes from a worker that says it is idle is noticed within 70 s. */
const NOTICED_WITHIN_MS = 70_000;

/** What a version of the SDK can do that not every one can. */
export interface SdkCapabilities {
  /** It asks which of its jobs to stop, so that a cancelled one ends at once. */
  stops: boolean;
  /** It looks at its machine before it takes jobs. */
  fitness: boolean;
  /** The health and the purge of its asyncio client work; earlier ones leave the address out. */
  wholeClient: boolean;
}

/** A worker that runs beside the test, and the endpoint that it serves. */
interface SdkWorker {
  jobs: QueueEndpointClient;
  program: PythonProcess;
  workerId: string;
}

/** The worker half of the SDK, and its client for jobs. */
export function pythonWorkerSuite(
  python: PythonInterpreter,
  { stops, fitness, wholeClient }: SdkCapabilities,
): void {
  describe('workers of the Python SDK', { concurrency: true }, () => {
    const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
    const programs: PythonProcess[] = [];
    let names = 0;
    after(() => Promise.all(programs.map((program) => program.kill())));

    const start = (source: string, env: Record<string, string>): PythonProcess => {
      const program = startPython(python, source, env);
      programs.push(program);
      return program;
    };
    const createEndpoint = (settings?: Record<string, unknown>): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, fixture.server.key, settings);
    /** A worker with this handler, on an endpoint of its own or a given one, which may not have started yet. */
    const startWorker = async (source: string, on?: QueueEndpointClient): Promise<SdkWorker> => {
      const jobs = on ?? (await createEndpoint());
      const workerId = `python-${(names += 1)}`;
      return {
        jobs,
        workerId,
        program: start(
          source,
          workerEnvironment({
            url: fixture.server.url,
            endpointId: jobs.id,
            workerId,
            key: fixture.server.key,
          }),
        ),
      };
    };
    /** Likewise, once it has started: how long that takes says nothing of how soon a job ends. */
    const worker = async (source: string, on?: QueueEndpointClient): Promise<SdkWorker> => {
      const started = await startWorker(source, on);
      await waitUntilPasses(async () => {
        const { ready, running } = (await started.jobs.health()).workers;
        assert.ok(ready + running >= 1, started.program.output());
      }, STARTED_WITHIN_MS);
      return started;
    };
    const answersOf = (source: string, jobs: QueueEndpointClient): Promise<Record<string, unknown>> =>
      runPythonForJson(python, source, {
        RUNPOD_ENDPOINT_BASE_URL: `${fixture.server.url}/v2`,
        KEY: fixture.server.key,
        ENDPOINT: jobs.id,
        WHOLE_CLIENT: String(wholeClient),
      });

    describe('with a plain handler', { concurrency: false }, () => {
      let jobs: QueueEndpointClient;
      let workerId: string;
      before(async () => ({ jobs, workerId } = await worker(PLAIN)));

      test('gives it the job as it was sent', async () => {
        const body = {
          input: { do: 'job' },
          policy: { ttl: 600_000 },
          s3Config: { accessId: 'a', accessSecret: 's', bucketName: 'b', endpointUrl: 'https://s3.example' },
          metadata: [1.5],
        };
        const { body: made } = await jobs.call('POST', 'run', body);
        const done = await jobs.waitForEnd(made.id);
        assert.deepEqual(
          [done.status, done.output, done.workerId],
          ['COMPLETED', { ...body, id: made.id }, workerId],
        );
      });

      test('brings back what it returns', async () => {
        const { text, body } = await jobs.call('POST', 'runsync?wait=60000', { input: { do: 'numbers' } });
        assert.deepEqual(body.output, { nan: null, float: 1, large: 2 ** 60, text: 'Grüße 🎉' });
        assert.match(text, /"float": 1\.0, "large": 1152921504606846976/);
        const nothing = await jobs.runSync({ do: 'nothing' }, PATIENCE_MS);
        assert.deepEqual([nothing.body.status, nothing.body.output], ['COMPLETED', undefined]);
      });

      test('tells its failures', async () => {
        const raised = await jobs.runSync({ do: 'raise' }, PATIENCE_MS);
        assert.equal(raised.body.status, 'FAILED');
        const report = JSON.parse(raised.body.error as string) as Record<string, string>;
        assert.deepEqual(
          [report['error_type'], report['error_message'], report['hostname'], report['worker_id']],
          ["<class 'ValueError'>", 'no such thing', 'here', workerId],
        );
        const told = await jobs.runSync({ do: 'error' }, PATIENCE_MS);
        assert.deepEqual(
          [told.body.status, told.body.error, told.body.output],
          ['FAILED', 'told by the handler', { half: 1 }],
        );
      });

      test('shows its progress', async () => {
        const id = await jobs.run({ do: 'progress' });
        await waitUntilPasses(async () => {
          const { status, output } = await jobs.status(id);
          assert.deepEqual({ status, output }, { status: 'IN_PROGRESS', output: { percent: 50 } });
        }, PATIENCE_MS);
        assert.equal((await jobs.waitForEnd(id)).output, 'all');
      });

      test('is answered by the Python client', async () => {
        const answers = await answersOf(CLIENT, jobs);
        assert.deepEqual(answers['output'], { do: 'echo', n: 1 });
        assert.equal(answers['status'], 'COMPLETED');
        assert.deepEqual(answers['run_sync'], { do: 'echo', n: 2 });
        assert.equal(answers['failed'], null);
        assert.equal((answers['nested'] as { status: string }).status, 'CANCELLED');
        assert.deepEqual(answers['stream'], [{ do: 'echo', n: 3 }]);
        assert.ok((answers['health'] as { workers: { ready: number } }).workers.ready >= 1);
        assert.deepEqual(answers['purge'], { removed: 0, status: 'completed' });
        assert.match(String(answers['unknown']), /404/);
        assert.equal(answers['unauthorized'], 'RuntimeError');
      });

      test('that wants to be replaced gets no job for a while, and another does', async () => {
        const done = await jobs.runSync({ do: 'refresh' }, PATIENCE_MS);
        assert.deepEqual([done.body.status, done.body.output], ['COMPLETED', { kept: 1 }]);
        const other = jobs.worker('another');
        const id = await jobs.run({ do: 'echo' });
        const { id: given } = await other.take();
        assert.equal(given, id);
        await other.done(id, { output: 'elsewhere' });
        assert.equal((await jobs.status(id)).output, 'elsewhere');
        other.close();
      });
    });

    test('a synchronous handler that blocks for 8 s loses no result', async () => {
      const { jobs } = await worker(PLAIN);
      const ids = [await jobs.run({ do: 'sleep', seconds: 8 }), await jobs.run({ do: 'sleep', seconds: 8 })];
      for (const id of ids)
        assert.deepEqual(
          [(await jobs.waitForEnd(id)).output, (await jobs.status(id)).retries],
          ['slept', undefined],
        );
      assert.deepEqual((await jobs.health()).jobs, {
        completed: 2,
        failed: 0,
        inProgress: 0,
        inQueue: 0,
        retried: 0,
      });
    });

    test('a job whose result cannot be sent is missed, and fails with the reason', async () => {
      // Without retries it is missed once, not twice.
      const { jobs } = await worker(PLAIN, await createEndpoint({ maxRetries: 0 }));
      const { status, error } = await jobs.waitForEnd(await jobs.run({ do: 'bytes' }), NOTICED_WITHIN_MS);
      assert.equal(status, 'FAILED');
      // Whether a ping has named the job in its short life decides how much of it was seen.
      assert.match(
        String(error),
        /^the worker (ended the job without a result|has neither the job nor a result of it: .*) \(after 0 retries\)$/,
      );
      assert.equal((await jobs.runSync({ do: 'echo' }, PATIENCE_MS)).body.status, 'COMPLETED');
    });

    test('a concurrent handler takes several jobs at once, and one of them may be cancelled', async () => {
      const { jobs, program } = await worker(CONCURRENT);
      // Earlier versions begin nothing new while the first job of all goes on, so there it is not endless.
      const endless = await jobs.run({ seconds: stops ? 300 : 0 });
      const ids = await Promise.all(Array.from({ length: 6 }, () => jobs.run({ seconds: 1.5 })));
      const spans = (await Promise.all(ids.map((id) => jobs.waitForEnd(id)))).map(
        ({ output }) => output as { began: number; ended: number },
      );
      const most = Math.max(
        ...spans.map(
          ({ began }) => spans.filter((other) => other.began <= began && other.ended > began).length,
        ),
      );
      assert.ok(most >= 2 && most <= 4, `${most} at once`);
      if (!stops) return;
      assert.equal((await jobs.status(endless)).status, 'IN_PROGRESS');
      await jobs.call('POST', `cancel/${endless}`);
      await waitUntilPasses(
        () => assert.ok(program.output().includes(`cancelled ${endless}`), program.output()),
        PATIENCE_MS,
      );
      assert.equal((await jobs.status(endless)).status, 'CANCELLED');
      const { began, ended } = (await jobs.waitForEnd(await jobs.run({ seconds: 0.1 }))).output as {
        began: number;
        ended: number;
      };
      assert.ok(ended > began);
    });

    test('a generator streams, in order, and its output is empty', async () => {
      const { jobs } = await worker(GENERATOR);
      const id = await jobs.run({ count: 30 });
      const read: unknown[] = [];
      for (let status = ''; status !== 'COMPLETED'; ) {
        const { body } = await jobs.call<{ status: string; stream: { output: unknown }[] }>(
          'GET',
          `stream/${id}?envelope=true`,
        );
        read.push(...body.stream.map(({ output }) => output));
        status = body.status;
      }
      assert.deepEqual(
        read,
        Array.from({ length: 30 }, (_, number) => ({ number, text: 'ü'.repeat(number) })),
      );
      assert.deepEqual((await jobs.status(id)).output, []);
      const broken = await jobs.run({ count: 9, raise_at: 3 });
      const { status, error } = await jobs.waitForEnd(broken);
      assert.equal(status, 'FAILED');
      assert.match(String(error), /stopped in the middle/);
      assert.equal((await jobs.call<unknown[]>('GET', `stream/${broken}`)).body.length, 3);
    });

    test('a generator that aggregates has the list of its chunks, and clients stream it', async () => {
      const { jobs } = await worker(AGGREGATING);
      const done = await jobs.runSync({ count: 5 }, PATIENCE_MS);
      assert.deepEqual(done.body.output, [0, 1, 2, 3, 4]);
      const answers = await answersOf(STREAM_CLIENT, jobs);
      assert.deepEqual(
        answers['stream'],
        Array.from({ length: 25 }, (_, number) => number),
      );
      assert.deepEqual(answers['async_stream'], [0, 1, 2, 3, 4]);
      assert.deepEqual([answers['async_status'], answers['async_output']], ['COMPLETED', [0, 1, 2, 3, 4]]);
      assert.equal((answers['async_cancel'] as { status: string }).status, 'CANCELLED');
      if (wholeClient) {
        assert.equal((answers['async_health'] as { jobs: { inQueue: number } }).jobs.inQueue, 0);
        assert.deepEqual(answers['async_purge'], { removed: 0, status: 'completed' });
      }
      assert.equal(answers['async_unauthorized'], 'KeyError');
    });

    test('a worker that is told to end finishes its job, takes no other, and none is lost', async () => {
      const { jobs, program } = await worker(ASYNC);
      const first = await jobs.run({ seconds: 3 });
      // Between its arrival and this line a worker that is told to end may drop it; it is then tried once
      // more.
      await waitUntilPasses(async () => assert.ok(program.output().includes(`began ${first}`)), PATIENCE_MS);
      program.terminate();
      const second = await jobs.run({ seconds: 0 });
      assert.equal((await jobs.waitForEnd(first)).status, 'COMPLETED');
      assert.equal(await program.ended, 0);
      assert.equal((await jobs.status(second)).status, 'IN_QUEUE');
      const other = jobs.worker();
      assert.equal((await other.take()).id, second);
      other.close();
    });

    test('a worker that is refreshed after every job ends soon after it', async () => {
      const { jobs, program } = await worker(REFRESHING);
      const done = await jobs.runSync({ do: 'echo' }, PATIENCE_MS);
      assert.deepEqual([done.body.status, done.body.output], ['COMPLETED', { do: 'echo' }]);
      const { took, result } = await measureTime(() => program.ended);
      assert.equal(result, 0);
      assert.ok(took < 15_000, `ended after ${took} ms`);
      const waiting = await jobs.run({ do: 'echo' });
      await worker(REFRESHING, jobs);
      assert.equal((await jobs.waitForEnd(waiting)).status, 'COMPLETED');
    });

    test('a worker in the shape of the vLLM one answers the OpenAI interface, streaming and not', async () => {
      const { jobs } = await worker(LANGUAGE_MODEL);
      const messages = [{ role: 'user', content: 'hello' }];
      const ask = (path: string, body?: unknown): Promise<ApiResponse<Record<string, unknown>>> =>
        jobs.call(body === undefined ? 'GET' : 'POST', `openai/v1/${path}`, body);
      const models = await ask('models');
      assert.deepEqual(
        [models.status, models.body],
        [200, { object: 'list', data: [{ id: 'small', object: 'model' }] }],
      );
      const whole = await ask('chat/completions', { model: 'small', messages });
      assert.deepEqual(
        [whole.status, whole.body],
        [200, { object: 'chat.completion', choices: [{ message: { role: 'assistant', content: 'HELLO' } }] }],
      );
      const streamed = await fetch(`${fixture.server.url}/v2/${jobs.id}/openai/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${jobs.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'small', messages, stream: true }),
      });
      assert.match(streamed.headers.get('content-type') ?? '', /^text\/event-stream/);
      const events = (await streamed.text())
        .split('\n\n')
        .filter((event) => event !== '')
        .map((event) => event.replace(/^data: /, ''));
      assert.equal(events.pop(), '[DONE]');
      assert.equal(
        events
          .map(
            (event) =>
              (JSON.parse(event) as { choices: { delta: { content: string } }[] }).choices[0]?.delta.content,
          )
          .join(''),
        'Grüße an alle',
      );
      const refused = await ask('chat/completions', { model: 'none', messages });
      assert.equal(refused.status, 500);
      assert.match((refused.body['error'] as { message: string }).message, /no such model/);
    });

    if (fitness)
      test('a worker whose check fails says so and ends', async () => {
        const { jobs, program } = await startWorker(UNHEALTHY);
        assert.equal(await program.ended, 1);
        assert.equal((await jobs.health()).workers.unhealthy, 1);
      });

    test('a worker with a wrong key asks less than once a second', async () => {
      const jobs = await createEndpoint();
      const place = { url: fixture.server.url, endpointId: jobs.id, workerId: 'stranger', key: 'rpa_WRONG' };
      const program = start(PLAIN, workerEnvironment(place));
      const refusals = (): number => program.output().split('401').length - 1;
      await waitUntilPasses(() => assert.ok(refusals() >= 3, program.output()), PATIENCE_MS);
      const [before, from] = [refusals(), Date.now()];
      await waitUntilPasses(() => assert.ok(Date.now() - from >= 6_000));
      // It polls for jobs and for stops, and pings: each less than once a second.
      assert.ok(refusals() - before <= 18, `${refusals() - before} refusals in 6 s`);
      await program.kill();
    });
  });
}
