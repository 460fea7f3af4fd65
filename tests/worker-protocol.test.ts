import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';
import { WorkerTokens } from '../packages/cloud/src/http/workers/tokens.ts';
import { clientOf } from './support/client.ts';
import { DATABASES } from './support/databases.ts';
import { eventually, newEndpoint, NO_SUCH_JOB, PROMPT_MS, timed } from './support/jobs.ts';
import type { TestEndpoint } from './support/jobs.ts';
import { stageOn } from './support/story.ts';
import type { TestAccount } from './support/story.ts';
import { publicWorker } from './support/worker.ts';
import type { GivenJob, PublicWorker, Reply } from './support/worker.ts';

const MEGABYTE = 1024 * 1024;
const MASTER_KEY = '0f'.repeat(32);

for (const kind of DATABASES) {
  describe(`the worker protocol, on ${kind}`, { concurrency: true }, () => {
    const stage = stageOn(kind, { BERTH_RATE_LIMITS: 'off', BERTH_MASTER_KEY: MASTER_KEY });
    let ann: TestAccount;
    before(async () => {
      ann = await stage.account('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<TestEndpoint> => newEndpoint(stage.server.url, ann.key, settings);
    /** A job that this worker runs. */
    const running = async (jobs: TestEndpoint, worker: PublicWorker): Promise<string> => {
      const id = await jobs.run();
      assert.equal((await worker.take()).id, id);
      return id;
    };

    test('a poll waits for a job and is woken when one comes', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      let answered = false;
      const polling = worker.poll().finally(() => (answered = true));
      await eventually(async () => assert.equal((await jobs.health()).workers.idle, 1));
      assert.equal(answered, false);
      const id = await jobs.run({ n: 1 });
      const { took, result } = await timed(() => polling);
      assert.ok(took < PROMPT_MS, `woken after ${took} ms`);
      assert.equal(result.status, 200);
      assert.match(result.headers['content-type'] ?? '', /^application\/json/);
      assert.deepEqual(result.body, { id, input: { n: 1 } });
      worker.close();
    });

    test('idle connections are kept longer than any worker keeps them', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await running(jobs, worker);
      for (const { headers } of [await worker.ping(), await worker.done(id, {}), await worker.chunk(id, {})]) {
        assert.equal(headers.connection, 'keep-alive');
        assert.ok(Number(/timeout=(\d+)/.exec(String(headers['keep-alive']))?.[1]) >= 75, String(headers['keep-alive']));
      }
      worker.close();
    });

    test('a request is read as the SDK sends it: a content type without a body, a stale request id, unknown parameters', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [first, second] = [await jobs.run(), await jobs.run()];
      await worker.pollBatch(2);
      const stale = { 'x-request-id': first, 'content-type': 'application/json' };
      const id = await jobs.run();
      const taken = await worker.send<GivenJob>('GET', `job-take/${worker.workerId}?gpu=NVIDIA+A40&retry_ping=1&job_in_progress=1&job_in_progress=1&future=%F0%9F%8E%89`, { headers: stale });
      assert.deepEqual([taken.status, taken.body.id], [200, id]);
      // The path names the job; the header may be another one's.
      const posted = await worker.send('POST', `job-done/${worker.workerId}/${second}?gpu=none&isStream=false`, { body: '{"output":"of the second"}', headers: { ...stale, 'content-type': 'application/x-www-form-urlencoded', charset: 'utf-8' } });
      assert.equal(posted.status, 200);
      assert.equal((await jobs.status(first)).status, 'IN_PROGRESS');
      assert.equal((await jobs.status(second)).output, 'of the second');
      // Workers of version 1.5 name no isStream.
      assert.equal((await worker.send('POST', `job-done/${worker.workerId}/${first}?gpu=none`, { body: '{"output":1}' })).status, 200);
      assert.equal((await jobs.status(first)).output, 1);
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
            const reply = await worker.pollBatch(size, { busy: true, signal: all.signal }).catch((error: unknown) => {
              if (!all.signal.aborted) throw error;
            });
            if (reply?.status !== 200) continue;
            const { body } = reply;
            assert.ok(Array.isArray(body) && body.length >= 1 && body.length <= size, `asked for ${size}, got ${body.length}`);
            assert.ok(body.every((job) => typeof job.id === 'string' && 'input' in job));
            assert.deepEqual(body.map(({ id }) => ids.indexOf(id)), body.map(({ id }) => ids.indexOf(id)).toSorted((a, b) => a - b));
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
        const { body } = await worker.send<GivenJob[]>('GET', `job-take-batch/${worker.workerId}?gpu=none&batch_size=${size}&job_in_progress=0`);
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
      const { hostname, port } = new URL(stage.server.url);
      // Once as the SDKs ask, and once in a way that is left to Node's HTTP.
      for (const more of ['', 'TE: trailers\r\n']) {
        const socket = connect(Number(port), hostname);
        socket.write(`GET /v2/${jobs.id}/job-take/gone?gpu=none&job_in_progress=0 HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: ${jobs.key}\r\n${more}\r\n`);
        const id = await jobs.run('x'.repeat(9_000_000));
        await once(socket, 'data');
        socket.pause();
        socket.resetAndDestroy();
        const other = jobs.worker();
        const { took, result } = await timed(() => other.take());
        assert.equal(result.id, id);
        assert.ok(took < PROMPT_MS, `it came after ${took} ms`);
        assert.equal((await jobs.status(id)).retries, undefined);
        await other.done(id, { output: 1 });
        other.close();
      }
    });

    test('a post under an id that is none changes no job', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      const other = id.replace(/.(?=-u1$)/, (digit) => (digit === '0' ? '1' : '0'));
      for (const reply of [await worker.chunk(other, { output: 1 }), await worker.done(other, { status: 'IN_PROGRESS', output: 2 }), await worker.done(other, { output: 3 })]) assert.equal(reply.status, 200);
      const { status, output } = await jobs.status(id);
      assert.deepEqual([status, output], ['IN_PROGRESS', undefined]);
      await worker.done(id, { output: 4 });
      assert.equal((await jobs.status(id)).output, 4);
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 4 }]);
      worker.close();
    });

    test('a job for a poll whose socket has closed goes to another worker at once', async () => {
      for (let time = 0; time < 5; time += 1) {
        const jobs = await endpoint();
        const [gone, other] = [jobs.worker('gone'), jobs.worker('other')];
        const leaving = new AbortController();
        const polls = [gone.poll({ signal: leaving.signal }), gone.pollBatch(5, { signal: leaving.signal })];
        await eventually(async () => assert.equal((await jobs.health()).workers.idle, 1));
        leaving.abort();
        await Promise.allSettled(polls);
        const id = await jobs.run();
        const { took, result } = await timed(() => other.take());
        assert.equal(result.id, id);
        assert.ok(took < PROMPT_MS, `went elsewhere after ${took} ms`);
        await other.done(id, { output: 1 });
        assert.deepEqual([(await jobs.status(id)).workerId, (await jobs.status(id)).retries], ['other', undefined]);
        for (const worker of [gone, other]) worker.close();
      }
    });

    test('a body is JSON whatever its content type says, and text keeps its characters', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const output = { greeting: 'Grüße, 世界 🎉', escaped: 'a=b&c=%41+"\\', control: '\u0000\u001f\u2028' };
      const id = await running(jobs, worker);
      await worker.chunk(id, { output });
      await worker.done(id, { output });
      assert.deepEqual((await jobs.status(id)).output, output);
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output }]);
      worker.close();
    });

    test('NaN and Infinity are taken in and come out as null, outside of texts only', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await running(jobs, worker);
      const value = '{"nan": NaN, "list": [Infinity, -Infinity, 1.0], "text": "NaN, -Infinity \\" NaN", "NaN": 1}';
      const clean = { nan: null, list: [null, null, 1], text: 'NaN, -Infinity " NaN', NaN: 1 };
      await worker.send('POST', `job-done/${worker.workerId}/${id}?isStream=false`, { body: `{"status": "IN_PROGRESS", "output": ${value}}` });
      assert.deepEqual((await jobs.status(id)).output, clean);
      await worker.chunk(id, `{"output": ${value}}`);
      await worker.done(id, `{"output": ${value}}`);
      const { text, body } = await jobs.call('GET', `status/${id}`);
      assert.deepEqual(body.output, clean);
      assert.ok(text.includes('[null, null, 1.0]'));
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: clean }]);
      const failed = await running(jobs, worker);
      await worker.done(failed, '{"error": {"code": NaN}}');
      assert.deepEqual((await jobs.status(failed)).error, { code: null });
      worker.close();
    });

    test('an empty result is a result; an error of any kind is a failure and may have an output beside it', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const cases: [string, string, unknown, unknown][] = [
        ['{}', 'COMPLETED', undefined, undefined], ['{"output":null}', 'COMPLETED', null, undefined], ['{"output":false}', 'COMPLETED', false, undefined], ['{"output":[]}', 'COMPLETED', [], undefined], ['{"output":1,"error":null}', 'COMPLETED', 1, undefined],
        ['{"error":"text"}', 'FAILED', undefined, 'text'], ['{"error":{"code":5},"output":{"extra":1}}', 'FAILED', { extra: 1 }, { code: 5 }], ['{"error":["a"]}', 'FAILED', undefined, ['a']], ['{"error":true}', 'FAILED', undefined, true],
        [JSON.stringify({ error: '{"error_type": "<class \'ValueError\'>", "error_message": "no"}' }), 'FAILED', undefined, '{"error_type": "<class \'ValueError\'>", "error_message": "no"}'],
        ['{"output":{"status":"IN_PROGRESS"}}', 'COMPLETED', { status: 'IN_PROGRESS' }, undefined],
      ];
      for (const [body, status, output, error] of cases) {
        const id = await running(jobs, worker);
        assert.equal((await worker.done(id, body)).status, 200);
        const job = await jobs.status(id);
        assert.deepEqual([job.status, job.output, job.error], [status, output, error], body);
      }
      worker.close();
    });

    test('repeated, late, foreign and senseless posts get 200 and change nothing', async () => {
      const jobs = await endpoint();
      const [worker, other] = [jobs.worker(), jobs.worker()];
      const id = await running(jobs, worker);
      for (const stranger of [other, jobs.worker()]) {
        for (const reply of [await stranger.done(id, { output: 'stolen' }), await stranger.progress(id, 'stolen'), await stranger.chunk(id, { output: 'stolen' })]) assert.equal(reply.status, 200);
      }
      const { status, output } = await jobs.status(id);
      assert.deepEqual({ status, output }, { status: 'IN_PROGRESS', output: undefined });
      await worker.done(id, { output: 'first' });
      for (const body of [{ output: 'second' }, { error: 'no' }]) assert.equal((await worker.done(id, body)).status, 200);
      assert.equal((await worker.progress(id, 'late')).status, 200);
      assert.equal((await worker.chunk(id, { output: 'late' })).status, 200);
      assert.equal((await jobs.status(id)).output, 'first');
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'first' }]);
      for (const unknown of [NO_SUCH_JOB, 'nonsense', '%E2%82%AC']) for (const reply of [await worker.done(unknown, { output: 1 }), await worker.chunk(unknown, { output: 1 })]) assert.equal(reply.status, 200);
      assert.deepEqual((await jobs.health()).jobs, { completed: 1, failed: 0, inProgress: 0, inQueue: 0, retried: 0 });
      for (const body of ['', 'output=1', '[]', '{"output":']) assert.equal((await worker.done(NO_SUCH_JOB, body)).status, 400, body);
      for (const one of [worker, other]) one.close();
    });

    test('a result of 25 MB is kept', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await running(jobs, worker);
      const output = `NaN ${'ö'.repeat((25 * MEGABYTE) / 2)} NaN`;
      assert.equal((await worker.done(id, { output })).status, 200);
      assert.ok((await jobs.status(id)).output === output, 'it came back whole');
      worker.close();
    });

    test('a ping is answered at once, however many jobs it names', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await running(jobs, worker);
      for (const count of [0, 1, 500, 1_600, 3_000]) {
        const { took, result } = await timed(() => worker.ping([id, ...Array.from({ length: count }, (_, n) => NO_SUCH_JOB.replace(/^0{8}/, String(n).padStart(8, '0')))]));
        assert.equal(result.status, 200, `${count} jobs`);
        assert.ok(took < PROMPT_MS, `${count} jobs took ${took} ms`);
      }
      assert.deepEqual((await jobs.health()).workers, { idle: 0, initializing: 0, ready: 1, running: 1, throttled: 0, unhealthy: 0 });
      worker.close();
    });

    test('a worker that reports a failed check is unhealthy', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const { took, result } = await timed(() => worker.ping([], `&status=unhealthy&check=_gpu_health_check&reason=${encodeURIComponent(`RuntimeError: no device\u0000 ${'x'.repeat(230)}`)}`));
      assert.equal(result.status, 200);
      assert.ok(took < PROMPT_MS);
      assert.equal((await jobs.health()).workers.unhealthy, 1);
      worker.close();
    });

    test('what shall stop is told, and told again at a pace until the worker no longer has it', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const ids = [await jobs.run(), await jobs.run(), await jobs.run()];
      await worker.pollBatch(3);
      const waiting = worker.stops();
      const since = performance.now();
      const first = await timed(async () => {
        await jobs.call('POST', `cancel/${ids[0]}`);
        return waiting;
      });
      assert.deepEqual([first.result.status, first.result.body], [200, { jobsToStop: [ids[0]] }]);
      assert.match(first.result.headers['content-type'] ?? '', /^application\/json/);
      assert.ok(first.took < PROMPT_MS, `told after ${first.took} ms`);
      await worker.ping(ids);
      assert.deepEqual((await worker.stops()).body, { jobsToStop: [ids[0]] });
      // Measured from before it was told: however slow the way, that is never too short.
      const took = performance.now() - since;
      assert.ok(took >= 3_000 && took < 3_000 + 2 * PROMPT_MS, `again after ${took} ms`);
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
      const id = await running(jobs, worker);
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

    test('a worker that asks to be replaced gets its polls back and no more jobs; its output does not show it', async () => {
      const jobs = await endpoint();
      const [worker, other] = [jobs.worker('tired'), jobs.worker('fresh')];
      const ids = [await jobs.run(), await jobs.run()];
      await worker.pollBatch(2);
      const polls = Promise.all([worker.pollBatch(3, { busy: true }), worker.stops()]);
      await eventually(async () => assert.equal((await jobs.health()).workers.running, 1));
      const released = await timed(async () => {
        await worker.done(ids[0] ?? '', { output: { a: 1 }, stopPod: true });
        return polls;
      });
      assert.deepEqual(released.result.map(({ status }) => status), [204, 204]);
      assert.ok(released.took < PROMPT_MS, `released after ${released.took} ms`);
      assert.deepEqual((await jobs.status(ids[0] ?? '')).output, { a: 1 });
      const id = await jobs.run();
      const asking = timed(() => worker.poll({ busy: true }));
      assert.equal((await other.take()).id, id);
      const { took, result } = await asking;
      assert.equal(result.status, 204);
      assert.ok(took >= 1_000 && took < 10_000, `held ${took} ms: long enough not to spin, short enough to end`);
      // What it still runs, it may end; also with an error.
      await worker.done(ids[1] ?? '', { error: 'no', stopPod: true });
      assert.deepEqual([(await jobs.status(ids[1] ?? '')).status, (await jobs.status(ids[1] ?? '')).error], ['FAILED', 'no']);
      for (const one of [worker, other]) one.close();
    });

    test('a wrong key is refused slowly: less than one request a second', async () => {
      const jobs = await endpoint();
      const bob = await stage.account(`bob of ${kind}`);
      const readOnly = (await ann.call<{ key: string }>('POST', '/v2/account/api-keys', { name: 'reader', access: 'READ_ONLY' })).body.key;
      await jobs.run();
      const cases: [string, number][] = [['rpa_WRONG', 401], ['', 401], ['rpw_wrong', 401], [bob.key, 404], [readOnly, 403]];
      await Promise.all(
        cases.flatMap(([key, status]) => {
          const worker = publicWorker({ url: stage.server.url, endpointId: jobs.id, workerId: 'w', key });
          const asks = [() => worker.poll(), () => worker.pollBatch(2), () => worker.stops(), ...(status === 404 ? [] : [() => worker.done(NO_SUCH_JOB, {}), () => worker.ping()])];
          return asks.map(async (ask) => {
            const { took, result } = await timed(ask as () => Promise<Reply>);
            assert.equal(result.status, status, result.text);
            assert.ok(took > 1_000, `refused after ${took} ms`);
            assert.deepEqual(Object.keys(result.body), ['error']);
          });
        }),
      );
      assert.equal((await jobs.health()).jobs.inQueue, 1);
    });

    test("a worker's own token opens the worker side of its endpoint under its name, and nothing else", async () => {
      const [jobs, other] = [await endpoint(), await endpoint()];
      const token = new WorkerTokens(Buffer.from(MASTER_KEY, 'hex')).of(jobs.id, 'mine');
      const as = (endpointId: string, workerId: string): PublicWorker => publicWorker({ url: stage.server.url, endpointId, workerId, key: token });
      const id = await jobs.run();
      const mine = as(jobs.id, 'mine');
      assert.equal((await mine.take()).id, id);
      await mine.chunk(id, { output: 'piece' });
      await mine.done(id, { output: 'whole' });
      assert.equal((await mine.ping()).status, 200);
      assert.equal((await jobs.status(id)).output, 'whole');
      await Promise.all([as(jobs.id, 'yours'), as(other.id, 'mine')].map(async (stranger) => assert.equal((await stranger.poll()).status, 401)));
      const client = clientOf(stage.server.url, token);
      for (const [method, path] of [['GET', `/v2/${jobs.id}/health`], ['POST', `/v2/${jobs.id}/run`], ['GET', `/v2/${jobs.id}/status/${id}`], ['GET', '/v2/serverless'], ['GET', '/v1/endpoints'], ['GET', '/v2/account']] as const) {
        assert.equal((await client.call(method, path, method === 'POST' ? { input: {} } : undefined)).status, 401, path);
      }
      assert.equal((await client.call('POST', `/graphql?api_key=${token}`, { query: '{ myself { id } }' })).status, 401);
      mine.close();
    });

    test('methods and names that are none are refused', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      await jobs.run();
      for (const [path, method] of [['job-take/w', 'GET'], ['job-take-batch/w', 'GET'], ['job-stop/w', 'GET'], ['ping/w', 'GET'], [`job-done/w/${NO_SUCH_JOB}`, 'POST'], [`job-stream/w/${NO_SUCH_JOB}`, 'POST']] as const) {
        for (const wrong of ['GET', 'POST', 'PUT', 'DELETE'].filter((name) => name !== method)) {
          const { status, headers } = await worker.send(wrong, `${path}?x=1`, wrong === 'GET' ? {} : { body: '{}' });
          assert.deepEqual([status, headers['allow']], [405, method], `${wrong} ${path}`);
        }
      }
      await Promise.all(['%00', 'a%20b', 'x'.repeat(201), '%ff', ''].map(async (name) => {
        const { took, result } = await timed(() => worker.send('GET', `job-take/${name}?job_in_progress=0`));
        assert.ok(result.status === 429 || result.status === 404, `${name}: ${result.status}`);
        assert.ok(took > 1_000, `${name} was refused after ${took} ms`);
      }));
      assert.equal((await jobs.health()).jobs.inQueue, 1);
      worker.close();
    });

    test('a post that breaks off in the middle is no defect of ours, and the job goes on', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await running(jobs, worker);
      const leaving = new AbortController();
      const sent = Promise.withResolvers<void>();
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"output":')),
        pull: () => {
          sent.resolve();
          return new Promise(() => undefined);
        },
      });
      const posting = fetch(`${stage.server.url}/v2/${jobs.id}/job-done/${worker.workerId}/${id}?isStream=false`, { method: 'POST', headers: { authorization: ann.key }, duplex: 'half', signal: leaving.signal, body });
      await sent.promise;
      await jobs.health();
      leaving.abort();
      await assert.rejects(posting);
      assert.equal((await jobs.status(id)).status, 'IN_PROGRESS');
      await worker.done(id, { output: 1 });
      assert.equal((await jobs.status(id)).status, 'COMPLETED');
      worker.close();
    });
  });
}

describe('an idle worker', { concurrency: true }, () => {
  const stage = stageOn('sqlite', { BERTH_RATE_LIMITS: 'off' });

  test('asks at most six times a minute, for jobs and for stops', async () => {
    const jobs = await newEndpoint(stage.server.url, stage.server.key);
    const worker = jobs.worker();
    for (const { took, result } of await Promise.all([timed(() => worker.poll()), timed(() => worker.pollBatch(5)), timed(() => worker.stops())])) {
      assert.equal(result.status, 204);
      assert.ok(took > 10_000 && took <= 25_000, `held ${took} ms`);
    }
    worker.close();
  });

  test('a result over 64 MB ends its job with the reason', async () => {
    const jobs = await newEndpoint(stage.server.url, stage.server.key);
    const worker = jobs.worker();
    const id = await jobs.run();
    await worker.take();
    assert.equal((await worker.done(id, { output: 'x'.repeat(64 * MEGABYTE) })).status, 413);
    assert.deepEqual([(await jobs.status(id)).status, (await jobs.status(id)).error], ['FAILED', 'the result is larger than 67108864 bytes; store it elsewhere and return its address']);
    worker.close();
  });
});
