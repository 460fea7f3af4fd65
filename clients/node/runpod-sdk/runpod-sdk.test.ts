import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { before, describe, test } from 'node:test';
import { npmFile } from '../../support/npm-client.mjs';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { waitFor } from '../../../packages/testing/src/wait-for.ts';

/** What the SDK shows of a job; it adds the last three. */
interface Job {
  id: string;
  status: string;
  output?: unknown;
  error?: string;
  delayTime?: number;
  executionTime?: number;
  started?: boolean;
  completed?: boolean;
  succeeded?: boolean;
}

interface SdkEndpoint {
  run(request: Record<string, unknown>, timeout?: number): Promise<Job>;
  runSync(request: Record<string, unknown>, timeout?: number): Promise<Job>;
  status(id: string, timeout?: number): Promise<Job>;
  statusSync(id: string, timeout?: number): Promise<Job>;
  stream(id: string, timeout?: number): AsyncGenerator<{ output: unknown }>;
  cancel(id: string, timeout?: number): Promise<Job>;
  health(timeout?: number): Promise<{ jobs: Record<string, number>; workers: Record<string, number> }>;
  purgeQueue(timeout?: number): Promise<{ removed: number; status: string }>;
}

interface Sdk {
  default(key: string, options: { baseUrl: string }): { endpoint(id: string): SdkEndpoint };
}

describe('runpod-sdk', () => {
  const fixture = clientFixture();
  let of: (id: string, key?: string) => SdkEndpoint;
  let echo: SdkEndpoint;
  before(async () => {
    const { default: runpodSdk } = (await import(
      pathToFileURL(npmFile('runpod-sdk', 'runpod-sdk/dist/src/index.js')).href
    )) as Sdk;
    of = (id, key = fixture.server.key) =>
      runpodSdk(key, { baseUrl: `${fixture.server.url}/v2` }).endpoint(id);
    echo = of(await fixture.deployExample('echo'));
  });

  test('runSync waits for the output', async () => {
    const job = await echo.runSync({ input: { message: 'hello' } });
    assert.deepEqual(
      [job.status, job.output, job.started, job.completed, job.succeeded],
      ['COMPLETED', { message: 'hello' }, true, true, true],
    );
    assert.match(job.id, /^sync-/);
    assert.ok(Number.isInteger(job.delayTime) && Number.isInteger(job.executionTime));
  });

  test('run answers at once; status and statusSync follow the job', async () => {
    const { id, status } = await echo.run({
      input: [1, 'two'],
      policy: { executionTimeout: 60_000, ttl: 600_000, lowPriority: true },
    });
    assert.equal(status, 'IN_QUEUE');
    const waited = await echo.statusSync(id);
    assert.deepEqual(
      [waited.id, waited.status, waited.output, waited.completed, waited.succeeded],
      [id, 'COMPLETED', [1, 'two'], true, true],
    );
    const looked = await echo.status(id);
    assert.deepEqual(
      [looked.id, looked.status, looked.output, looked.started],
      [id, 'COMPLETED', [1, 'two'], true],
    );
  });

  test('stream yields every chunk in order, then ends', async () => {
    const streaming = of(await fixture.deployExample('streaming'));
    const { id } = await streaming.run({ input: { text: 'one two three', pauseMs: 50 } });
    const seen: unknown[] = [];
    for await (const { output } of streaming.stream(id)) seen.push(output);
    assert.deepEqual(
      seen,
      ['one', 'two', 'three'].map((word, index) => ({ index, word })),
    );
    assert.equal((await streaming.status(id)).status, 'COMPLETED');
  });

  test('a job that fails is completed and not succeeded', async () => {
    const job = await of(await fixture.deployExample('failing')).runSync({ input: { how: 'error' } });
    assert.deepEqual([job.status, job.completed, job.succeeded], ['FAILED', true, false]);
    assert.equal(job.error, 'the handler says no');
  });

  test('cancel ends a job that runs, also for whoever waits for it', async () => {
    const slow = of(await fixture.deployExample('progress'));
    const { id } = await slow.run({ input: { steps: 1000, stepMs: 50 } });
    await waitFor('the job runs', async () => (await slow.status(id)).status === 'IN_PROGRESS');
    const waiting = slow.statusSync(id);
    assert.deepEqual(((job) => [job.id, job.status])(await slow.cancel(id)), [id, 'CANCELLED']);
    const { status, completed, succeeded } = await waiting;
    assert.deepEqual([status, completed, succeeded], ['CANCELLED', true, false]);
  });

  test('health counts jobs and workers', async () => {
    const { jobs, workers } = await echo.health();
    assert.deepEqual(Object.keys(jobs).sort(), ['completed', 'failed', 'inProgress', 'inQueue', 'retried']);
    assert.deepEqual(Object.keys(workers).sort(), [
      'idle',
      'initializing',
      'ready',
      'running',
      'throttled',
      'unhealthy',
    ]);
    assert.equal(jobs['completed'], 2);
  });

  test('purgeQueue removes what waits', async () => {
    const idle = of(await fixture.deployExample('echo', { min: 0, max: 0 }));
    await Promise.all([1, 2, 3].map((n) => idle.run({ input: n })));
    assert.deepEqual(await idle.purgeQueue(), { removed: 3, status: 'completed' });
    assert.equal((await idle.health()).jobs['inQueue'], 0);
  });

  test('runSync gives up waiting when its own time is over', async () => {
    const job = await of(await fixture.deployExample('echo', { min: 0, max: 0 })).runSync(
      { input: {} },
      1000,
    );
    assert.deepEqual([job.status, job.started, job.completed], ['IN_QUEUE', true, false]);
  });

  test('a wrong key, an unknown endpoint and an unknown job are errors with their status', async () => {
    const statusOf = (work: Promise<unknown>): Promise<unknown> =>
      work.then(
        () => 'no error',
        (error: { response?: { status: number } }) => error.response?.status,
      );
    assert.equal(await statusOf(of('nosuchendpoint').run({ input: {} })), 404);
    assert.equal(await statusOf(echo.status('nosuchjob')), 404);
    assert.equal(await statusOf(of('nosuchendpoint', 'rpa_WRONG').health()), 401);
  });
});
