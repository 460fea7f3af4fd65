import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import type { DatabaseKind } from '../packages/testing/src/test-database.ts';
import {
  createQueueEndpoint,
  NO_SUCH_JOB,
  WAKEUP_LIMIT_MS,
  submitAndTake,
  measureTime,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import type { TakenJob } from '../packages/testing/src/protocol-workers.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

/** How long a poll waits for a job. */
const POLL_MS = 24_000;

// Most of the time they wait.
describe('the polls of a worker', { concurrency: true }, () => DATABASES.forEach(pollsSuite));

function pollsSuite(kind: DatabaseKind): void {
  describe(`the polls of a worker, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);

    test('a poll waits for a job and is woken when one comes', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      let answered = false;
      const polling = worker.poll().finally(() => (answered = true));
      await waitUntilPasses(async () => assert.equal((await jobs.health()).workers.idle, 1));
      assert.equal(answered, false);
      const id = await jobs.run({ n: 1 });
      const { took, result } = await measureTime(() => polling);
      assert.ok(took < WAKEUP_LIMIT_MS, `woken after ${took} ms`);
      assert.equal(result.status, 200);
      assert.match(result.headers['content-type'] ?? '', /^application\/json/);
      assert.deepEqual(result.body, { id, input: { n: 1 } });
      worker.close();
    });

    test('a batch has as many jobs as were asked for at most, in order, and no job goes out twice', async () => {
      const jobs = await endpoint();
      const ids: string[] = [];
      for (let n = 0; n < 120; n += 1) ids.push(await jobs.run({ n }));
      const workers = [jobs.worker(), jobs.worker(), jobs.worker(), jobs.worker()];
      const seen: string[] = [];
      const all = new AbortController();
      await Promise.all(
        workers.map(async (worker, index) => {
          const size = [1, 3, 7, 30][index] ?? 1;
          while (!all.signal.aborted) {
            const reply = await worker
              .pollBatch(size, { busy: true, signal: all.signal })
              .catch((error: unknown) => {
                if (!all.signal.aborted) throw error;
              });
            if (reply?.status !== 200) continue;
            const { body } = reply;
            assert.ok(
              Array.isArray(body) && body.length >= 1 && body.length <= size,
              `asked for ${size}, got ${body.length}`,
            );
            assert.ok(body.every((job) => typeof job.id === 'string' && 'input' in job));
            assert.deepEqual(
              body.map(({ id }) => ids.indexOf(id)),
              body.map(({ id }) => ids.indexOf(id)).toSorted((a, b) => a - b),
            );
            seen.push(...body.map(({ id }) => id));
            if (seen.length >= ids.length) all.abort();
          }
        }),
      );
      assert.equal(new Set(seen).size, seen.length);
      assert.deepEqual(seen.toSorted(), ids.toSorted());
      for (const worker of workers) worker.close();
    });

    test('a batch size that is none counts as one', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      for (const size of ['0', '-3', 'many', '']) {
        await jobs.run();
        await jobs.run();
        const { body } = await worker.send<TakenJob[]>(
          'GET',
          `job-take-batch/${worker.workerId}?gpu=none&batch_size=${size}&job_in_progress=0`,
        );
        assert.equal(body.length, 1, size);
        await jobs.call('POST', 'purge-queue');
      }
      worker.close();
    });

    test('an older worker with several polls open gets a job on each', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const polls = [worker.poll(), worker.poll(), worker.poll()];
      const ids = [await jobs.run(), await jobs.run(), await jobs.run()];
      assert.deepEqual((await Promise.all(polls)).map(({ body }) => body.id).toSorted(), ids.toSorted());
      worker.close();
    });

    test('a job whose answer breaks off on the way goes to another worker at once, as if never taken', async () => {
      const jobs = await endpoint();
      const { hostname, port } = new URL(fixture.server.url);
      // Once as the SDKs ask, and once in a way that is left to Node's HTTP.
      for (const more of ['', 'TE: trailers\r\n']) {
        const socket = connect(Number(port), hostname);
        socket.write(
          `GET /v2/${jobs.id}/job-take/gone?gpu=none&job_in_progress=0 HTTP/1.1\r\n` +
            `Host: ${hostname}\r\nAuthorization: ${jobs.key}\r\n${more}\r\n`,
        );
        const id = await jobs.run('x'.repeat(9_000_000));
        await once(socket, 'data');
        socket.pause();
        socket.resetAndDestroy();
        const other = jobs.worker();
        const { took, result } = await measureTime(() => other.take());
        assert.equal(result.id, id);
        assert.ok(took < WAKEUP_LIMIT_MS, `it came after ${took} ms`);
        assert.equal((await jobs.status(id)).retries, undefined);
        await other.done(id, { output: 1 });
        other.close();
      }
    });

    test('a job for a poll whose socket has closed goes to another worker at once', async () => {
      for (let time = 0; time < 5; time += 1) {
        const jobs = await endpoint();
        const [gone, other] = [jobs.worker('gone'), jobs.worker('other')];
        const leaving = new AbortController();
        const polls = [gone.poll({ signal: leaving.signal }), gone.pollBatch(5, { signal: leaving.signal })];
        await waitUntilPasses(async () => assert.equal((await jobs.health()).workers.idle, 1));
        leaving.abort();
        await Promise.allSettled(polls);
        const id = await jobs.run();
        const { took, result } = await measureTime(() => other.take());
        assert.equal(result.id, id);
        assert.ok(took < WAKEUP_LIMIT_MS, `went elsewhere after ${took} ms`);
        await other.done(id, { output: 1 });
        assert.deepEqual(
          [(await jobs.status(id)).workerId, (await jobs.status(id)).retries],
          ['other', undefined],
        );
        for (const worker of [gone, other]) worker.close();
      }
    });

    test('a ping is answered at once, however many jobs it names', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await submitAndTake(jobs, worker);
      for (const count of [0, 1, 500, 1_600, 3_000]) {
        const { took, result } = await measureTime(() =>
          worker.ping([
            id,
            ...Array.from({ length: count }, (_, n) =>
              NO_SUCH_JOB.replace(/^0{8}/, String(n).padStart(8, '0')),
            ),
          ]),
        );
        assert.equal(result.status, 200, `${count} jobs`);
        assert.ok(took < WAKEUP_LIMIT_MS, `${count} jobs took ${took} ms`);
      }
      assert.deepEqual((await jobs.health()).workers, {
        idle: 0,
        initializing: 0,
        ready: 1,
        running: 1,
        throttled: 0,
        unhealthy: 0,
      });
      worker.close();
    });

    test('a worker that reports a failed check is unhealthy', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const { took, result } = await measureTime(() =>
        worker.ping(
          [],
          `&status=unhealthy&check=_gpu_health_check&reason=${encodeURIComponent(`RuntimeError: no device\u0000 ${'x'.repeat(230)}`)}`,
        ),
      );
      assert.equal(result.status, 200);
      assert.ok(took < WAKEUP_LIMIT_MS);
      assert.equal((await jobs.health()).workers.unhealthy, 1);
      worker.close();
    });

    test('a cancellation is sent, and sent again at an interval until the worker drops the job', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const ids = [await jobs.run(), await jobs.run(), await jobs.run()];
      await worker.pollBatch(3);
      const waiting = worker.stops();
      const since = performance.now();
      const first = await measureTime(async () => {
        await jobs.call('POST', `cancel/${ids[0]}`);
        return waiting;
      });
      assert.deepEqual([first.result.status, first.result.body], [200, { jobsToStop: [ids[0]] }]);
      assert.match(first.result.headers['content-type'] ?? '', /^application\/json/);
      assert.ok(first.took < WAKEUP_LIMIT_MS, `told after ${first.took} ms`);
      await worker.ping(ids);
      assert.deepEqual((await worker.stops()).body, { jobsToStop: [ids[0]] });
      // Measured from before it was told: however slow the way, that is never too short.
      const took = performance.now() - since;
      assert.ok(took >= 3_000 && took < 3_000 + 2 * WAKEUP_LIMIT_MS, `again after ${took} ms`);
      // It lists the job no longer: only the next one is told.
      await worker.ping(ids.slice(1));
      await jobs.call('POST', `cancel/${ids[1]}`);
      assert.deepEqual((await worker.stops()).body, { jobsToStop: [ids[1]] });
      // A late result settles it too.
      await worker.done(ids[1] ?? '', { output: 'too late' });
      const quiet = new AbortController();
      const silence = worker.stops(quiet.signal);
      await jobs.call('POST', `cancel/${ids[2]}`);
      assert.deepEqual((await silence).body, { jobsToStop: [ids[2]] });
      worker.close();
    });

    test('a job that is retried on the worker that it was stopped on runs undisturbed', async () => {
      const jobs = await endpoint({ timeout: 5_000 });
      const worker = jobs.worker();
      const id = await submitAndTake(jobs, worker);
      assert.deepEqual((await worker.stops()).body, { jobsToStop: [id] });
      await jobs.call('POST', `retry/${id}`);
      assert.equal((await worker.take()).id, id);
      const quiet = new AbortController();
      const stops = worker.stops(quiet.signal);
      await worker.ping([id]);
      await jobs.call('GET', `status-sync/${id}?wait=4000`);
      assert.equal(await Promise.race([stops.then(() => 'told'), Promise.resolve('quiet')]), 'quiet');
      assert.equal((await worker.done(id, { output: 'second try' })).status, 200);
      assert.equal((await jobs.status(id)).output, 'second try');
      quiet.abort();
      await assert.rejects(stops);
      worker.close();
    });

    test('a worker that asks to be replaced gets no more jobs, and its output hides the flag', async () => {
      const jobs = await endpoint();
      const [worker, other] = [jobs.worker('tired'), jobs.worker('fresh')];
      const ids = [await jobs.run(), await jobs.run()];
      await worker.pollBatch(2);
      const polls = Promise.all([worker.pollBatch(3, { busy: true }), worker.stops()]);
      await waitUntilPasses(async () => assert.equal((await jobs.health()).workers.running, 1));
      const released = await measureTime(async () => {
        await worker.done(ids[0] ?? '', { output: { a: 1 }, stopPod: true });
        return polls;
      });
      assert.deepEqual(
        released.result.map(({ status }) => status),
        [204, 204],
      );
      assert.ok(released.took < WAKEUP_LIMIT_MS, `released after ${released.took} ms`);
      assert.deepEqual((await jobs.status(ids[0] ?? '')).output, { a: 1 });
      const id = await jobs.run();
      const asking = measureTime(() => worker.poll({ busy: true }));
      assert.equal((await other.take()).id, id);
      const { took, result } = await asking;
      assert.equal(result.status, 204);
      assert.ok(
        took >= 1_000 && took < 10_000,
        `held ${took} ms: long enough not to spin, short enough to end`,
      );
      // What it still runs, it may end; also with an error.
      await worker.done(ids[1] ?? '', { error: 'no', stopPod: true });
      assert.deepEqual(
        [(await jobs.status(ids[1] ?? '')).status, (await jobs.status(ids[1] ?? '')).error],
        ['FAILED', 'no'],
      );
      for (const one of [worker, other]) one.close();
    });

    test('an idle worker asks at most six times a minute, for jobs and for stops', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      for (const { took, result } of await Promise.all([
        measureTime(() => worker.poll()),
        measureTime(() => worker.pollBatch(5)),
        measureTime(() => worker.stops()),
      ])) {
        assert.equal(result.status, 204);
        assert.ok(took > 10_000 && took < POLL_MS + WAKEUP_LIMIT_MS, `held ${took} ms`);
      }
      worker.close();
    });
  });
}
