import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  createQueueEndpoint,
  WAKEUP_LIMIT_MS,
  measureTime,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { ENVELOPE, eventsOf, followStream, readStream } from '../packages/testing/src/job-streams.ts';
import type { Chunk } from '../packages/testing/src/job-streams.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';
import { largeChunksSuite } from './jobs/large-chunks.suite.ts';

const CHUNKS = repeats({ usually: 250, long: 1_000 });

for (const kind of DATABASES) {
  describe(`streams, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (): Promise<QueueEndpointClient> => createQueueEndpoint(fixture.server.url, ann.key);
    test('the answer is an array of chunks, and an object for the clients that read one', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      const asks: [string, Record<string, string>, boolean][] = [
        ['', {}, false],
        ['', { 'user-agent': 'python-requests/2.34.2' }, false],
        ['?envelope=false', ENVELOPE, false],
        ['', ENVELOPE, true],
        ['', { 'content-type': 'application/json' }, true],
        ['?envelope=true', {}, true],
        ['', { 'user-agent': 'RunPod-Python-SDK/1.12.0' }, true],
      ];
      for (const [index, [query, headers, wrapped]] of asks.entries()) {
        const chunk = {
          output: { text: [`chunk ${index}`], input_tokens: 1, output_tokens: index },
          metrics: { stream_index: index, avg_gen_throughput: 1.5 },
        };
        await worker.chunk(id, chunk);
        const { status, body } = await jobs.call<unknown>('GET', `stream/${id}${query}`, undefined, headers);
        assert.equal(status, 200);
        assert.deepEqual(
          body,
          wrapped ? { id, status: 'IN_PROGRESS', stream: [chunk] } : [chunk],
          JSON.stringify([query, headers]),
        );
      }
      worker.close();
    });

    test('every chunk comes once, in order, and the end only with the last of them', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      await worker.chunk(id, { output: 'a' });
      await worker.chunk(id, { output: null });
      assert.deepEqual(await readStream(jobs, id), {
        id,
        status: 'IN_PROGRESS',
        stream: [{ output: 'a' }, { output: null }],
      });
      await worker.chunk(id, { output: 'c' });
      await worker.done(id, { output: [] }, true);
      assert.deepEqual(await readStream(jobs, id), { id, status: 'COMPLETED', stream: [{ output: 'c' }] });
      assert.deepEqual(await readStream(jobs, id), { id, status: 'COMPLETED', stream: [] });
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, []);
      assert.deepEqual((await jobs.status(id)).output, []);
      worker.close();
    });

    test('a stream that has nothing new waits a little, and is woken by a chunk', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      const queued = await measureTime(() => readStream(jobs, id));
      assert.deepEqual(queued.result, { id, status: 'IN_QUEUE', stream: [] });
      assert.ok(queued.took >= 1_000 && queued.took < 9_000, `held ${queued.took} ms`);
      await worker.take();
      const waiting = measureTime(() => jobs.call<Chunk[]>('GET', `stream/${id}?wait=30000`));
      await jobs.status(id);
      await worker.chunk(id, { output: 1 });
      const woken = await waiting;
      assert.deepEqual(woken.result.body, [{ output: 1 }]);
      assert.ok(woken.took < WAKEUP_LIMIT_MS, `woken after ${woken.took} ms`);
      const ending = measureTime(() => jobs.call<Chunk[]>('GET', `stream/${id}?wait=30000`));
      await worker.done(id, { output: [] }, true);
      assert.deepEqual((await ending).result.body, []);
      assert.ok((await ending).took < WAKEUP_LIMIT_MS);
      assert.equal((await jobs.call('GET', `stream/${id}?wait=soon`)).status, 400);
      worker.close();
    });

    test('readers who meet share the chunks: each goes to one of them', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      const read: unknown[] = [];
      const reader = async (): Promise<void> => {
        for (;;) {
          const { status, stream } = await readStream(jobs, id);
          read.push(...stream.map(({ output }) => output));
          if (status === 'COMPLETED') return;
        }
      };
      const reading = [reader(), reader(), reader()];
      for (let n = 0; n < 60; n += 1) await worker.chunk(id, { output: n });
      await worker.done(id, { output: [] }, true);
      await Promise.all(reading);
      assert.deepEqual(
        read.toSorted((a, b) => Number(a) - Number(b)),
        Array.from({ length: 60 }, (_, n) => n),
      );
      worker.close();
    });

    test(`${CHUNKS} chunks arrive exactly once, in order`, async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      const read: unknown[] = [];
      const reading = (async () => {
        for (;;) {
          const { status, stream } = await readStream(jobs, id);
          read.push(...stream.map(({ output }) => output));
          if (status === 'COMPLETED') return;
        }
      })();
      const following = followStream(jobs, id);
      for (let n = 0; n < CHUNKS; n += 1) await worker.chunk(id, { output: n });
      await worker.done(id, { output: [] }, true);
      await reading;
      const all = Array.from({ length: CHUNKS }, (_, n) => n);
      assert.deepEqual(read, all);
      const events = eventsOf(await following);
      assert.deepEqual(
        events.map(({ data }) => data.output),
        all,
      );
      assert.deepEqual(
        events.map(({ id: number }) => Number(number)),
        all.map((n) => n + 1),
      );
      worker.close();
    });

    test('a job that streamed nothing has its output as the one chunk', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const plain = await jobs.run();
      await worker.take();
      await worker.done(plain, { output: { answer: 42 } });
      assert.deepEqual(await readStream(jobs, plain), {
        id: plain,
        status: 'COMPLETED',
        stream: [{ output: { answer: 42 } }],
      });
      assert.deepEqual(await readStream(jobs, plain), { id: plain, status: 'COMPLETED', stream: [] });
      assert.deepEqual(eventsOf(await followStream(jobs, plain)), [
        { id: '1', data: { output: { answer: 42 } } },
      ]);
      for (const body of [{}, { error: 'no' }]) {
        const id = await jobs.run();
        await worker.take();
        await worker.done(id, body);
        const { status, stream } = await readStream(jobs, id);
        assert.deepEqual([status, stream], ['error' in body ? 'FAILED' : 'COMPLETED', []]);
      }
      worker.close();
    });

    test('what was streamed stays readable when the job fails or is cancelled', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      for (const [status, end] of [
        ['FAILED', (id: string) => worker.done(id, { error: 'handler: boom' }, true)],
        ['CANCELLED', (id: string) => jobs.call('POST', `cancel/${id}`)],
      ] as const) {
        const id = await jobs.run();
        await worker.take();
        await worker.chunk(id, { output: 'before' });
        await end(id);
        await worker.chunk(id, { output: 'after' });
        assert.deepEqual(await readStream(jobs, id), { id, status, stream: [{ output: 'before' }] });
        assert.deepEqual(await readStream(jobs, id), { id, status, stream: [] });
      }
      worker.close();
    });

    largeChunksSuite(endpoint);

    test('events of a job that is tried again begin anew, and say of which attempt they are', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      for (const output of ['a1', 'a2']) await worker.chunk(id, { output });
      await worker.done(id, { error: 'broken' });
      assert.deepEqual(
        eventsOf(await followStream(jobs, id)).map((event) => event.id),
        ['1', '2'],
      );
      assert.equal((await jobs.call('POST', `retry/${id}`)).status, 200);
      await worker.take();
      for (const output of ['b1', 'b2', 'b3']) await worker.chunk(id, { output });
      await worker.done(id, { output: [] }, true);
      const all = ['b1', 'b2', 'b3'].map((output, index) => ({ id: `2/${index + 1}`, data: { output } }));
      assert.deepEqual(eventsOf(await followStream(jobs, id, { 'last-event-id': '2' })), all);
      assert.deepEqual(eventsOf(await followStream(jobs, id, { 'last-event-id': '2/2' })), all.slice(2));
      worker.close();
    });

    test('server-sent events follow a job live, take nothing from other readers, and close at its end', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      let text = '';
      const following = followStream(jobs, id, {}, (all) => (text = all));
      await worker.take();
      for (const n of [1, 2]) {
        await worker.chunk(id, { output: n });
        await waitUntilPasses(() => assert.equal(eventsOf(text).length, n), WAKEUP_LIMIT_MS);
      }
      assert.deepEqual((await readStream(jobs, id)).stream, [{ output: 1 }, { output: 2 }]);
      await worker.chunk(id, { output: 3 });
      await worker.done(id, { output: [] }, true);
      const events = eventsOf(await following);
      assert.deepEqual(events, [
        { id: '1', data: { output: 1 } },
        { id: '2', data: { output: 2 } },
        { id: '3', data: { output: 3 } },
      ]);
      assert.deepEqual(eventsOf(await followStream(jobs, id)), events);
      assert.deepEqual(eventsOf(await followStream(jobs, id, { 'last-event-id': '2' })), [events[2]]);
      assert.deepEqual(eventsOf(await followStream(jobs, id, { 'last-event-id': '3' })), []);
      assert.deepEqual(eventsOf(await followStream(jobs, id, { 'last-event-id': 'nonsense' })), events);
      worker.close();
    });

    test('a chunk that was written on many lines is one event', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [chunked, plain] = [await jobs.run(), await jobs.run()];
      await worker.pollBatch(2);
      await worker.chunk(chunked, '{\r\n  "output": [\n    1.0,\n    "a\\nb"\n  ]\n}');
      await worker.done(chunked, { output: [] }, true);
      await worker.done(plain, '{"output": {\n\n  "a": 1\n}}');
      assert.deepEqual(eventsOf(await followStream(jobs, chunked)), [
        { id: '1', data: { output: [1, 'a\nb'] } },
      ]);
      assert.deepEqual(eventsOf(await followStream(jobs, plain)), [{ id: '1', data: { output: { a: 1 } } }]);
      worker.close();
    });

    test('a reader of events who disconnects affects no other', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      const leaving = new AbortController();
      const response = await fetch(`${jobs.url}/stream/${id}`, {
        headers: { authorization: jobs.key, accept: 'text/event-stream' },
        signal: leaving.signal,
      });
      leaving.abort();
      await assert.rejects(response.text());
      await worker.chunk(id, { output: 1 });
      await worker.done(id, { output: [] }, true);
      assert.deepEqual((await readStream(jobs, id)).stream, [{ output: 1 }]);
      worker.close();
    });

    test('events of an unknown job are refused in JSON', async () => {
      const jobs = await endpoint();
      const answer = await jobs.call('GET', 'stream/00000000-0000-8000-8000-000000000000-u1', undefined, {
        accept: 'text/event-stream',
      });
      assert.deepEqual(
        [answer.status, answer.headers.get('content-type')],
        [404, 'application/json; charset=utf-8'],
      );
    });
  });
}
