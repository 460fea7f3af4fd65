import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { queueEndpointClient, measureTime } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { processesOfInstance } from '../packages/testing/src/pod-client.ts';
import { PYTHON_LIKE_WORKER_FILES } from '../packages/testing/src/python-like-worker.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { waitFor, waitUntilPasses } from '../packages/testing/src/wait-for.ts';

/** Starting a process takes its time on a machine that has much else to do. */
const PATIENCE_MS = 60_000;

describe('the life of a worker', { concurrency: 5 }, () => {
  let place: TestDatabase;
  let server: ServerProcess;
  let client: ApiClient;
  let image: string;
  before(async () => {
    place = await createTestDatabase('sqlite');
    server = await startServerProcess(place, { BERTH_RATE_LIMITS: 'off' });
    client = server.client();
    image = (
      await client.call<{ image: string }>('POST', '/v2/images', {
        name: 'protocol',
        files: PYTHON_LIKE_WORKER_FILES,
      })
    ).body.image;
  });
  after(async () => {
    await server.stop();
    await place.drop();
  });

  const deployed = async (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> => {
    const body = {
      name: 'life',
      type: 'QUEUE',
      image,
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 0, max: 1, idleTimeout: 300 },
      ...settings,
    };
    const made = await client.call<{ id: string }>('POST', '/v2/serverless', body);
    assert.equal(made.status, 201, made.text);
    return queueEndpointClient(client, made.body.id, server.key);
  };
  const runs = (jobs: QueueEndpointClient, id: string): Promise<void> =>
    waitUntilPasses(async () => assert.equal((await jobs.status(id)).status, 'IN_PROGRESS'), PATIENCE_MS);
  /** A worker that is there and has nothing to do. */
  const idle = async (jobs: QueueEndpointClient): Promise<string> =>
    (await jobs.waitForEnd(await jobs.run({ do: 'echo' }))).workerId ?? '';
  const logOf = async (jobs: QueueEndpointClient, workerId: string): Promise<string> =>
    (await client.call('GET', `/v2/serverless/${jobs.id}/workers/${workerId}/logs`)).text;
  /** Gives the endpoint a new release: its workers shall go. */
  const release = async (
    jobs: QueueEndpointClient,
    change: Record<string, unknown> = { env: { RELEASE: String(Math.random()) } },
  ): Promise<void> => {
    const { status, text } = await client.call('PATCH', `/v2/serverless/${jobs.id}`, change);
    assert.equal(status, 200, text);
  };
  const removed = (jobs: QueueEndpointClient): Promise<unknown> =>
    client.call('DELETE', `/v2/serverless/${jobs.id}`);

  test('it finds all addresses in its environment, and nothing that keeps it from starting', async () => {
    const jobs = await deployed();
    const { output, workerId } = await jobs.waitForEnd(await jobs.run({ do: 'environment' }));
    const env = output as Record<string, string>;
    const base = `${server.url}/v2/${jobs.id}`;
    assert.deepEqual(
      [
        env['RUNPOD_WEBHOOK_GET_JOB'],
        env['RUNPOD_WEBHOOK_POST_OUTPUT'],
        env['RUNPOD_WEBHOOK_POST_STREAM'],
        env['RUNPOD_WEBHOOK_PING'],
      ],
      [
        `${base}/job-take/$ID?gpu=none`,
        `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=none`,
        `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=none`,
        `${base}/ping/$RUNPOD_POD_ID?gpu=none`,
      ],
    );
    assert.deepEqual([env['RUNPOD_ENDPOINT_ID'], env['RUNPOD_POD_ID']], [jobs.id, workerId]);
    assert.ok(Number(env['RUNPOD_PING_INTERVAL']) >= 1_000);
    assert.equal(env['RUNPOD_SKIP_AUTO_SYSTEM_CHECKS'], 'true');
    for (const level of ['RUNPOD_LOG_LEVEL', 'RUNPOD_DEBUG_LEVEL'])
      assert.match(env[level] ?? 'DEBUG', /^(NOTSET|TRACE|DEBUG|INFO|WARN|ERROR)$/i);
    await removed(jobs);
  });

  test('idle, it ends soon after its stop, although it polls', async () => {
    const jobs = await deployed();
    const workerId = await idle(jobs);
    const { took } = await measureTime(async () => {
      await release(jobs);
      await waitFor(
        'the worker has left',
        async () => !(await listWorkers(client, jobs.id)).some(({ id }) => id === workerId),
      );
    });
    // A poll that nobody released would be held for 24 s, and the worker killed after 10.
    assert.ok(took < 8_000, `left after ${took} ms`);
    assert.match(await logOf(jobs, workerId), /left in peace/);
    await removed(jobs);
  });

  test('busy, it finishes its job before it ends', async () => {
    const jobs = await deployed();
    await idle(jobs);
    const id = await jobs.run({ do: 'sleep', ms: 3_000 });
    await runs(jobs, id);
    await release(jobs);
    const { status, output, workerId = '', retries } = await jobs.waitForEnd(id);
    assert.deepEqual([status, output, retries], ['COMPLETED', 'slept', undefined]);
    await waitUntilPasses(
      async () => assert.match(await logOf(jobs, workerId), /left in peace/),
      PATIENCE_MS,
    );
    await removed(jobs);
  });

  test('gets no job after its stop, with many releases and jobs at once', async () => {
    const jobs = await deployed({ workers: { min: 1, max: 2, idleTimeout: 1 } });
    const seen = new Set([await idle(jobs)]);
    const ids: string[] = [];
    let over = false;
    const submitting = (async () => {
      while (!over) {
        const id = await jobs.run({ do: 'echo' });
        ids.push(id);
        // A few at a time: the queue is empty now and then, and polls are open when a worker is told.
        if (ids.length % 4 === 0) await jobs.waitForEnd(id);
      }
    })();
    for (let releases = 0; releases < 6; releases += 1) {
      const { completed } = (await jobs.health()).jobs;
      await release(jobs);
      await waitUntilPasses(
        async () => assert.ok((await jobs.health()).jobs.completed > completed + 10),
        PATIENCE_MS,
      );
    }
    over = true;
    await submitting;
    for (const id of ids) {
      const { status, workerId = '', retries } = await jobs.waitForEnd(id);
      assert.deepEqual([status, retries], ['COMPLETED', undefined]);
      seen.add(workerId);
    }
    assert.ok(seen.size > 3, `${seen.size} workers`);
    // The log of a worker that lives is followed, that of one that has ended is read.
    await release(jobs, { workers: { min: 0, max: 0 } });
    await waitFor('all workers have left', async () => (await listWorkers(client, jobs.id)).length === 0);
    for (const workerId of seen) assert.doesNotMatch(await logOf(jobs, workerId), /LOST/);
    assert.equal((await jobs.health()).jobs.retried, 0);
    await removed(jobs);
  });

  test('killed, it is noticed before its heartbeats time out, and its job runs on another worker', async () => {
    const jobs = await deployed({ workers: { min: 0, max: 1, idleTimeout: 300 }, maxRetries: 1 });
    await idle(jobs);
    const id = await jobs.run({ do: 'sleep', ms: 1_500 });
    await runs(jobs, id);
    const { workerId: first = '' } = await jobs.status(id);
    const [main, pinger] = processesOfInstance(first);
    assert.ok(main !== undefined && pinger !== undefined, 'it pings from a second process');
    process.kill(main, 'SIGKILL');
    const { took, result } = await measureTime(() => jobs.waitForEnd(id));
    assert.deepEqual([result.status, result.retries], ['COMPLETED', 1]);
    assert.notEqual(result.workerId, first);
    // Silence alone would take 30 s to notice.
    assert.ok(took < 25_000, `missed after ${took} ms`);
    await waitUntilPasses(() => assert.deepEqual(processesOfInstance(first), []), PATIENCE_MS);
    assert.equal((await jobs.health()).jobs.retried, 1);
    await removed(jobs);
  });

  test('one that never pings and has a poll open is alive: its job goes on', async () => {
    const jobs = await deployed({ env: { PINGS: 'no' } });
    await idle(jobs);
    // Longer than the silence after which a worker is taken for dead, and the look after it.
    const id = await jobs.run({ do: 'sleep', ms: 45_000 });
    const { status, retries } = await jobs.waitForEnd(id);
    assert.deepEqual([status, retries], ['COMPLETED', undefined]);
    await removed(jobs);
  });

  test('nor is one lost that cannot ping or poll because its handler never yields', async () => {
    const jobs = await deployed({ env: { PINGS: 'no' } });
    await idle(jobs);
    const id = await jobs.run({ do: 'block', ms: 65_000 });
    const { body } = await jobs.call('GET', `status-sync/${id}?wait=120000`);
    assert.deepEqual([body.status, body.output, body.retries], ['COMPLETED', 'blocked', undefined]);
    await removed(jobs);
  });

  test('an uninterruptible handler is killed at its timeout, and the next job gets another worker', async () => {
    const jobs = await deployed();
    // Longer than a poll stays open: it cannot be told to stop any more.
    const stuck = await jobs.run({ do: 'block', ms: 300_000 }, { policy: { executionTimeout: 28_000 } });
    await runs(jobs, stuck);
    const next = await jobs.run({ do: 'echo' });
    const { status, error, workerId } = await jobs.waitForEnd(stuck);
    assert.equal(status, 'TIMED_OUT');
    assert.match(String(error), /longer than its execution timeout of 28000 ms/);
    const { result, took } = await measureTime(() => jobs.waitForEnd(next));
    assert.equal(result.status, 'COMPLETED');
    assert.notEqual(result.workerId, workerId);
    assert.ok(took < 55_000, `killed after ${took} ms`);
    assert.equal((await jobs.status(stuck)).status, 'TIMED_OUT');
    await waitUntilPasses(() => assert.deepEqual(processesOfInstance(workerId ?? ''), []), PATIENCE_MS);
    await removed(jobs);
  });

  test('so is one that has another job, which it cannot run either and which runs elsewhere', async () => {
    const jobs = await deployed({ env: { CONCURRENCY: '2' }, maxRetries: 1 });
    await idle(jobs);
    const stuck = await jobs.run({ do: 'block', ms: 300_000, after: 1_000 });
    await runs(jobs, stuck);
    const { workerId: first } = await jobs.status(stuck);
    await waitUntilPasses(
      async () => assert.match((await jobs.call('GET', `logs/${stuck}`)).text, /blocking/),
      PATIENCE_MS,
    );
    // Comes by the poll that was open by then.
    const next = await jobs.run({ do: 'echo' });
    await runs(jobs, next);
    assert.equal((await jobs.status(next)).workerId, first);
    await jobs.call('POST', `cancel/${stuck}`);
    const { result, took } = await measureTime(() => jobs.waitForEnd(next));
    assert.deepEqual([result.status, result.retries], ['COMPLETED', 1]);
    assert.notEqual(result.workerId, first);
    assert.ok(took < 70_000, `killed after ${took} ms`);
    await removed(jobs);
  });

  test('one that exits with a code has crashed: its job is tried once more, then fails with the reason', async () => {
    const jobs = await deployed();
    const { status, error, retries } = await jobs.waitForEnd(await jobs.run({ do: 'exit', code: 3 }));
    assert.deepEqual([status, retries], ['FAILED', 1]);
    assert.match(
      String(error),
      /^the worker that ran the job ended: it ended with code 3: leaving with 3 \(after 1 retry\)$/,
    );
    assert.deepEqual([(await jobs.health()).jobs.failed, (await jobs.health()).jobs.retried], [1, 1]);
    // Others are not held back for long.
    assert.equal((await jobs.waitForEnd(await jobs.run({ do: 'echo' }))).status, 'COMPLETED');
    await removed(jobs);
  });

  test('one that asked to be replaced ends as it should: no crash, and a fresh one follows', async () => {
    const jobs = await deployed();
    const { workerId: first = '', output } = await jobs.waitForEnd(await jobs.run({ do: 'refresh' }));
    assert.deepEqual(output, { refresh: true });
    const next = await jobs.waitForEnd(await jobs.run({ do: 'echo' }));
    assert.equal(next.status, 'COMPLETED');
    assert.notEqual(next.workerId, first);
    await waitUntilPasses(async () => assert.match(await logOf(jobs, first), /left in peace/), PATIENCE_MS);
    const { workers, jobs: counted } = await jobs.health();
    assert.deepEqual([workers.unhealthy, counted.retried, counted.failed], [0, 0, 0]);
    await removed(jobs);
  });

  test('one that takes its time to start is waited for, as long as its endpoint says', async () => {
    const patient = await deployed({ env: { SLOW_START: '6000' } });
    const id = await patient.run({ do: 'echo' });
    const [starting] = await waitFor('a worker starts', async () => {
      const workers = await listWorkers(client, patient.id);
      return workers.length > 0 ? workers : undefined;
    });
    assert.match((await patient.status(id)).reason ?? '', /a worker is starting/);
    const { status, workerId } = await patient.waitForEnd(id);
    assert.deepEqual([status, workerId], ['COMPLETED', starting?.id]);
    await removed(patient);
    const hasty = await deployed({ env: { SLOW_START: '600000', RUNPOD_INIT_TIMEOUT: '2' } });
    const waiting = await hasty.run({ do: 'echo' });
    await waitUntilPasses(
      async () => assert.match((await hasty.status(waiting)).reason ?? '', /it was not ready within 2 s/),
      PATIENCE_MS,
    );
    await removed(hasty);
  });

  test('each of several jobs at once has the lines that name it in its own log', async () => {
    const jobs = await deployed({ env: { CONCURRENCY: '3' } });
    await idle(jobs);
    const ids = await Promise.all(Array.from({ length: 3 }, () => jobs.run({ do: 'sleep', ms: 1_000 })));
    const ended = await Promise.all(ids.map((id) => jobs.waitForEnd(id)));
    assert.equal(new Set(ended.map(({ workerId }) => workerId)).size, 1);
    for (const id of ids) {
      await waitUntilPasses(async () => {
        const { body } = await jobs.call<{ logs: { line: string }[] }>('GET', `logs/${id}`);
        const lines = body.logs.map(({ line }) => JSON.parse(line) as { requestId: string; message: string });
        assert.deepEqual(
          lines,
          ['Started.', 'asleep', 'awake', 'Finished.'].map((message) => ({
            requestId: id,
            message,
            level: 'INFO',
          })),
        );
      });
    }
    await removed(jobs);
  });
});
