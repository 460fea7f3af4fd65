import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { repeats } from '../../packages/testing/src/test-tier.ts';
import { CLOCK_RATE, ConformanceFixture } from './conformance-fixture.ts';
import type { ConformanceInput } from './conformance-input.ts';
import {
  breakWithChunk,
  breakWithJobOrResult,
  breakWithJobTwice,
  breakWhileWaitingAndWorking,
} from './broken-connections.ts';
import type { WorkerProcess, WorkerSdk } from './worker-process.ts';

/** A job, and what it must come to. */
interface Outcome {
  name: string;
  input: ConformanceInput;
  status: 'COMPLETED' | 'FAILED';
  output?: unknown;
  error?: RegExp;
  chunks?: unknown[];
}

const MEGABYTES = repeats({ usually: 20, long: 100 });

const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number);

const PLAIN: Outcome[] = [
  {
    name: 'returns a value',
    input: { do: 'echo', value: { a: [1, 'ü'] } },
    status: 'COMPLETED',
    output: { a: [1, 'ü'] },
  },
  { name: 'returns nothing', input: { do: 'nothing' }, status: 'COMPLETED' },
  { name: 'raises', input: { do: 'raise' }, status: 'FAILED', error: /broken on purpose/ },
  {
    name: 'returns an error',
    input: { do: 'error' },
    status: 'FAILED',
    output: { extra: 1 },
    error: /^no good$/,
  },
  {
    name: 'returns what JSON cannot hold',
    input: { do: 'unsendable' },
    status: 'FAILED',
    error: /the output cannot be sent as JSON/,
  },
  {
    name: 'returns a circle',
    input: { do: 'circle' },
    status: 'FAILED',
    error: /the output cannot be sent as JSON/,
  },
  {
    name: `prints ${MEGABYTES} MB`,
    input: { do: 'print', megabytes: MEGABYTES },
    status: 'COMPLETED',
    output: 'printed',
  },
];

const STREAMS: Outcome[] = [
  {
    name: 'yields in order',
    input: { count: 300 },
    status: 'COMPLETED',
    output: [],
    chunks: numbers(300),
  },
  {
    name: 'yields and raises',
    input: { count: 9, raiseAt: 3 },
    status: 'FAILED',
    error: /stream broken/,
    chunks: numbers(3),
  },
  {
    name: 'yields an error',
    input: { count: 9, errorAt: 3 },
    status: 'FAILED',
    error: /^no more$/,
    chunks: numbers(3),
  },
  {
    name: 'yields what JSON cannot hold',
    input: { count: 9, unsendableAt: 3 },
    status: 'FAILED',
    error: /a chunk cannot be sent as JSON/,
    chunks: numbers(3),
  },
];

/** A piece of work of a worker that lives through it. */
type Step = (fixture: ConformanceFixture, worker: WorkerProcess) => Promise<void>;

const progress: Step = async (fixture) => {
  const until = fixture.path('until');
  const id = await fixture.run({ do: 'progress', until });
  let shown = await fixture.status(id);
  while (shown.output === undefined) shown = await fixture.status(id);
  assert.deepEqual([shown.status, shown.output], ['IN_PROGRESS', { at: 1 }]);
  fixture.touch(until);
  assert.equal((await fixture.end(id)).output, 'done');
};

const blocks: Step = async (fixture) => {
  const runs = fixture.path('runs');
  // A silent worker is lost after 30 seconds of the server's clock.
  const id = await fixture.run({ do: 'block', seconds: Math.ceil(38 / CLOCK_RATE), runs });
  assert.equal((await fixture.end(id)).output, 'unblocked');
  assert.equal(fixture.runsOf(runs, id), 1);
};

const cancellation: Step = async (fixture, worker) => {
  const id = await fixture.run({ do: 'cancel' });
  await fixture.printed(worker, 'running\n');
  await fixture.cancel(id);
  await fixture.printed(worker, 'saw the cancellation\n');
  assert.equal((await fixture.result({ do: 'echo', value: 1 })).output, 1);
  assert.equal((await fixture.status(id)).status, 'CANCELLED');
};

const cancelledGenerator =
  (stubborn: boolean): Step =>
  async (fixture, worker) => {
    const [says, closed] = [`yields, ${stubborn}`, `closed, ${stubborn}`];
    const id = await fixture.run({ count: 100_000, pauseMs: 5, stubborn, says, closed });
    await fixture.printed(worker, `${says}\n`);
    await fixture.cancel(id);
    await fixture.printed(worker, `${closed}\n`);
    assert.deepEqual(await fixture.chunks(await fixture.run({ count: 3 })), numbers(3));
    assert.equal((await fixture.status(id)).status, 'CANCELLED');
    assert.ok(!(await fixture.chunks(id)).includes('after the end'));
  };

const refresh: Step = async (fixture, worker) => {
  const job = await fixture.result({ do: 'refresh' });
  assert.deepEqual([job.status, job.output], ['COMPLETED', { a: 1 }]);
  assert.equal(await worker.ended, 0);
};

const exits: Step = async (fixture, worker) => {
  const runs = fixture.path('runs');
  const id = await fixture.run({ do: 'exit', runs });
  const job = await fixture.end(id);
  assert.equal(job.status, 'FAILED');
  assert.match(job.error ?? '', /the handler ended the process with exit code 3/);
  assert.equal(await worker.ended, 3);
  assert.equal(fixture.runsOf(runs, id), 1);
};

/** Its job ends here; the next one is left for another worker. */
const terminated: Step = async (fixture, worker) => {
  const until = fixture.path('until');
  const id = await fixture.run({ do: 'wait', until, value: 'finished' });
  await fixture.printed(worker, 'running\n');
  const next = await fixture.run({ do: 'echo', value: 'next' });
  worker.terminate();
  await fixture.printed(worker, 'worker stops');
  fixture.touch(until);
  assert.equal(await worker.ended, 0);
  assert.equal((await fixture.status(id)).output, 'finished');
  assert.equal((await fixture.status(next)).status, 'IN_QUEUE');
  await fixture.cancel(next);
};

/** The same rules for every SDK, over each of its protocols. */
export function workerConformance(sdk: WorkerSdk): void {
  for (const channel of sdk.channels) {
    const protocol = channel === 'fast' ? 'the fast channel' : 'the public protocol';
    describe(`${sdk.name} over ${protocol}`, () => {
      let fixture: ConformanceFixture;
      before(async () => {
        fixture = await ConformanceFixture.open(sdk, channel);
      });
      after(() => fixture.close());

      test('a plain handler', (t) =>
        fixture.withWorker(async (worker, proxy) => {
          for (const outcome of PLAIN) await t.test(outcome.name, () => comesTo(fixture, outcome));
          await t.test('shows progress', () => progress(fixture, worker));
          await t.test('blocks the interpreter, and is not taken for dead', () => blocks(fixture, worker));
          await t.test('the connection breaks while the worker waits or works', () =>
            breakWhileWaitingAndWorking(fixture, worker, proxy),
          );
          await t.test('the connection breaks with a job, a result or its acknowledgement on the way', () =>
            breakWithJobOrResult(fixture, proxy, channel),
          );
          await t.test('SIGTERM ends the worker after its job', () => terminated(fixture, worker));
        }));

      test('a generator', (t) =>
        fixture.withWorker(
          async (worker, proxy) => {
            for (const outcome of STREAMS) await t.test(outcome.name, () => comesTo(fixture, outcome));
            await t.test('is closed when it is cancelled', () => cancelledGenerator(false)(fixture, worker));
            await t.test('yields after it was cancelled', () => cancelledGenerator(true)(fixture, worker));
            await t.test('the connection breaks with a chunk or its acknowledgement on the way', () =>
              breakWithChunk(fixture, proxy, channel),
            );
          },
          { handler: 'stream' },
        ));

      test('a generator whose chunks are aggregated', () =>
        fixture.withWorker(
          () => comesTo(fixture, { name: '', input: { count: 5 }, status: 'COMPLETED', output: numbers(5) }),
          { handler: 'stream', aggregate: true },
        ));

      test('a cancellation reaches the handler', () =>
        fixture.withWorker((worker) => cancellation(fixture, worker), { handler: 'cancellable' }));

      test('a job that breaks off twice on its way to the worker runs, and costs no retry', () =>
        fixture.withWorker((_, proxy) => breakWithJobTwice(fixture, proxy, channel)));

      test('refresh_worker ends the worker after the result', () =>
        fixture.withWorker((worker) => refresh(fixture, worker)));

      test('a handler that exits fails its job, and ends the worker with that code', () =>
        fixture.withWorker((worker) => exits(fixture, worker)));

      test('a worker that dies loses nothing', async () => {
        const [runs, until] = [fixture.path('runs'), fixture.path('until')];
        const id = await fixture.run({ do: 'die', runs, until });
        const other = await fixture.run({ do: 'echo', value: 'other' });
        await fixture.withWorker((worker) => worker.ended);
        await fixture.withWorker(async () => {
          assert.equal((await fixture.end(id)).output, 'survived');
          assert.equal(fixture.runsOf(runs, id), 2);
          assert.equal((await fixture.end(other)).output, 'other');
        });
      });

      if (channel === 'fast')
        test('a server of a version without the channel', () =>
          fixture.withWorker(
            async (worker) => {
              assert.equal((await fixture.result({ do: 'echo', value: 1 })).output, 1);
              if (sdk.env['WORKER_SDK'] === 'runpod')
                assert.match(worker.output, /this worker is not accelerated: the server does not offer/);
            },
            { channel: 'auto', hideChannel: true },
          ));
    });
  }
}

async function comesTo(
  fixture: ConformanceFixture,
  { input, status, output, error, chunks }: Outcome,
): Promise<void> {
  const id = await fixture.run(input);
  const job = await fixture.end(id);
  assert.equal(job.status, status, JSON.stringify(job));
  if (output !== undefined) assert.deepEqual(job.output, output);
  if (error !== undefined) assert.match(job.error ?? '', error);
  if (chunks !== undefined) assert.deepEqual(await fixture.chunks(id), chunks);
}
