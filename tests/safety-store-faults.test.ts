import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../packages/cloud/src/support/clock.ts';
import { seededRandom } from '../packages/testing/src/safety/seeded-random.ts';
import { startRecordingChannelWorker } from '../packages/testing/src/safety/recording-channel-worker.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { SimulatedClients } from '../packages/testing/src/safety/simulated-clients.ts';
import { acceleratedClock } from '../packages/testing/src/safety/accelerated-clock.ts';
import { failOnceJobStore, faultyJobStore } from '../packages/testing/src/safety/faulty-job-store.ts';
import type { FaultyJobStore } from '../packages/testing/src/safety/faulty-job-store.ts';
import { monotonicMs } from '../packages/testing/src/safety/job-history.ts';
import type { HistoryEvent } from '../packages/testing/src/safety/job-history.ts';
import { callHttp } from '../packages/testing/src/safety/http-call.ts';
import type { HttpReply } from '../packages/testing/src/safety/http-call.ts';
import { startRecordingPublicWorker } from '../packages/testing/src/safety/recording-public-worker.ts';
import { startInProcessServer } from '../packages/testing/src/safety/in-process-server.ts';
import type { InProcessServer } from '../packages/testing/src/safety/in-process-server.ts';
import { assertHistorySafe } from '../packages/testing/src/safety/assert-history-safe.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import { seed } from '../packages/testing/src/property-testing.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';

const JOBS = repeats({ usually: 100, long: 500 });
const SETTLES_WITHIN_MS = 40_000;
/** Half a minute of silence takes 1.5 s. */
const RATE = 20;
const ODDS = { before: 0.08, after: 0.08 };

for (const kind of DATABASES) {
  test(`store calls that fail before or after they took effect lose nothing and change no end, on ${kind}`, {
    timeout: 180_000,
  }, async (t) => {
    const history: HistoryEvent[] = [];
    const closing = closeAfterTest(t);
    const database = await createTestDatabase(kind);
    closing(() => database.drop());
    let faulty: FaultyJobStore | undefined;
    const site = await startInProcessServer({
      database,
      clock: acceleratedClock(RATE),
      endpoint: { maxRetries: 3 },
      wrapJobStore: (store) => (faulty = faultyJobStore(store, seededRandom(seed, `faults ${kind}`))).store,
    });
    closing(() => site.close());
    faulty?.setProbabilities(ODDS);
    history.push({ kind: 'disturbance', what: 'store calls fail', at: monotonicMs() });
    const worker = {
      server: () => site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      pingEvery: 300,
      report: (event: HistoryEvent) => void history.push(event),
    };
    const workers = [
      startRecordingPublicWorker({ ...worker, workerId: 'single', concurrency: 1 }),
      startRecordingPublicWorker({ ...worker, workerId: 'batch', concurrency: 5 }),
      startRecordingChannelWorker({ ...worker, workerId: 'channel', concurrency: 5 }),
    ];
    closing(() => Promise.all(workers.map((each) => each.stop())));
    const clients = new SimulatedClients({
      server: () => site.url,
      endpointId: site.endpoint.id,
      key: ROOT_KEY,
      history,
      random: seededRandom(seed, `clients ${kind}`),
      jobDurationMs: { least: 0, most: 100 },
      disruptions: { cancel: 6, retry: 6, purge: 0 },
      streams: true,
    });
    await clients.runClients(8, { least: 0, most: 60 }, () => clients.jobs >= JOBS);
    faulty?.setProbabilities({ before: 0, after: 0 });
    await clients.waitForAllEnds(SETTLES_WITHIN_MS);
    const counts = await clients.health();

    process.stdout.write(
      `${kind}: ${clients.jobs} jobs: ${JSON.stringify(clients.tally())}, faults ${JSON.stringify(faulty?.faults())}\n`,
    );
    assertHistorySafe(history);
    assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
  });
}

for (const kind of DATABASES) {
  describe(`a store call that fails after it took effect, on ${kind}`, () => {
    let site: InProcessServer;
    let store: ReturnType<typeof failOnceJobStore>;
    let drop: () => Promise<void>;
    before(async () => {
      const database = await createTestDatabase(kind);
      drop = database.drop;
      site = await startInProcessServer({
        database,
        clock: systemClock,
        wrapJobStore: (real) => (store = failOnceJobStore(real)).store,
      });
    });
    after(async () => {
      await site.close();
      await drop();
    });
    const send = async (method: string, path: string, body?: unknown): Promise<HttpReply> => {
      const reply = await callHttp({
        method,
        url: `${site.url}/v2/${site.endpoint.id}/${path}`,
        authorization: ROOT_KEY,
        body,
      });
      assert.ok(reply !== undefined);
      return reply;
    };
    const take = async (): Promise<string> =>
      ((await send('GET', 'job-take/w?x=1&job_in_progress=0')).body as { id: string }).id;
    const submit = async (): Promise<string> =>
      ((await send('POST', 'run', { input: 1 })).body as { id: string }).id;
    /** Well below every wait that would end by itself. */
    const soon = { timeout: 10_000 };

    test('a synchronous caller is answered when its job ends', soon, async () => {
      const answer = send('POST', 'runsync?wait=60000', { input: 1 });
      const id = await take();
      store.failNext('change');
      assert.equal((await send('POST', `job-done/w/${id}?x=1`, { output: 'done' })).status, 200);
      assert.deepEqual(((await answer).body as { output: string }).output, 'done');
    });

    test('a retry is made once, is answered as made, and reaches a worker that waits', soon, async () => {
      const id = await submit();
      assert.equal(await take(), id);
      await send('POST', `job-done/w/${id}?x=1`, { error: 'no' });
      const taken = take();
      store.failNext('change');
      const { status } = await send('POST', `retry/${id}`);
      assert.equal(status, 200);
      assert.equal(await taken, id);
      assert.equal((await send('POST', `job-done/w/${id}?x=1`, { output: 1 })).status, 200);
    });

    test(
      'a retry whose job has failed again by the time it is tried again is not made twice',
      soon,
      async () => {
        const id = await submit();
        assert.equal(await take(), id);
        await send('POST', `job-done/w/${id}?x=1`, { error: 'first' });
        const taken = take();
        store.failNext('change');
        const retried = send('POST', `retry/${id}`);
        // The worker asks once more, so that it gets the job before the retry is tried again.
        const again = take();
        assert.equal(await Promise.race([taken, again]), id);
        await send('POST', `job-done/w/${id}?x=1`, { error: 'second' });
        assert.equal((await retried).status, 200);
        const { status, error } = (await send('GET', `status/${id}`)).body as {
          status: string;
          error: string;
        };
        assert.deepEqual([status, error], ['FAILED', 'second']);
        // For the one that still waits.
        await submit();
        await Promise.all([taken, again]);
      },
    );

    test('a chunk is kept once', soon, async () => {
      const id = await submit();
      assert.equal(await take(), id);
      await send('POST', `job-stream/w/${id}?x=1`, { output: 'a' });
      store.failNext('appendChunks');
      assert.equal((await send('POST', `job-stream/w/${id}?x=1`, { output: 'a' })).status, 200);
      await send('POST', `job-stream/w/${id}?x=1`, { output: 'b' });
      await send('POST', `job-done/w/${id}?x=1`, { output: [] });
      assert.deepEqual((await send('GET', `stream/${id}`)).body, [
        { output: 'a' },
        { output: 'a' },
        { output: 'b' },
      ]);
    });

    test('a stream that someone follows breaks off, and does not hang', soon, async () => {
      const id = await submit();
      const response = await fetch(`${site.url}/v2/${site.endpoint.id}/stream/${id}`, {
        headers: { authorization: ROOT_KEY, accept: 'text/event-stream' },
      });
      const reader = response.body?.getReader();
      assert.match(Buffer.from((await reader?.read())?.value ?? []).toString(), /waiting/);
      store.failNext('listChunks');
      assert.equal((await send('POST', `cancel/${id}`)).status, 200);
      await assert.rejects(async () => reader?.read());
    });
  });
}
