import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueueEndpointClient } from '../../packages/testing/src/queue-endpoint-client.ts';
import { eventsOf, followStream, readStream } from '../../packages/testing/src/job-streams.ts';
import type { Chunk, Envelope } from '../../packages/testing/src/job-streams.ts';

const MEGABYTE = 1024 * 1024;

/** What is larger than one chunk may be is cut, and put together it is what was sent. */
export function largeChunksSuite(endpoint: () => Promise<QueueEndpointClient>): void {
  test('a text over 1 MB is cut into chunks that put together are the text', async () => {
    const jobs = await endpoint();
    const worker = jobs.worker();
    const id = await jobs.run();
    await worker.take();
    const text = `${'plain '.repeat(200_000)}${'日本語🎉'.repeat(120_000)}${'"\\\u0001\n'.repeat(100_000)}`;
    const small = 'x'.repeat(MEGABYTE - 100);
    await worker.chunk(id, { output: small });
    await worker.chunk(id, { output: text });
    await worker.done(id, { output: [] }, true);
    const chunks: Chunk[] = [];
    for (let status = ''; status !== 'COMPLETED'; ) {
      const page = await readStream(jobs, id);
      status = page.status;
      chunks.push(...page.stream);
    }
    assert.equal(chunks[0]?.output, small);
    const pieces = chunks.slice(1);
    assert.ok(pieces.length > 1);
    for (const piece of pieces) {
      assert.deepEqual(Object.keys(piece), ['output']);
      assert.ok(Buffer.byteLength(JSON.stringify(piece)) <= MEGABYTE);
    }
    assert.ok(pieces.map(({ output }) => output).join('') === text, 'the text came back whole');
    worker.close();
  });

  test('an object over 1 MB is cut as the text of its JSON, and says so', async () => {
    const jobs = await endpoint();
    const worker = jobs.worker();
    const id = await jobs.run();
    await worker.take();
    const output = `{"float":1.0,"big":1152921504606846976,"rows":[${Array.from({ length: 60_000 }, (_, n) => `{"row":${n},"text":"ü${n}"}`).join(',')}]}`;
    await worker.chunk(id, `{"output":${output}}`);
    await worker.done(id, { output: [] }, true);
    const { stream } = await readStream(jobs, id);
    assert.ok(stream.length > 1);
    for (const [index, chunk] of stream.entries()) {
      assert.deepEqual([chunk.part, chunk.parts], [index + 1, stream.length]);
      assert.ok(Buffer.byteLength(JSON.stringify(chunk)) <= MEGABYTE);
    }
    assert.ok(stream.map((chunk) => chunk.output).join('') === output, 'the object came back to the letter');
    worker.close();
  });

  test('a chunk with more than 1 MB beside its output is cut as a whole, and the job goes on', async () => {
    const jobs = await endpoint();
    const worker = jobs.worker();
    const id = await jobs.run();
    await worker.take();
    const chunk = `{"output":"x","metrics":"${'m'.repeat(2_000_000)}"}`;
    assert.equal((await worker.chunk(id, chunk)).status, 200);
    assert.equal((await worker.chunk(id, { output: 'next' })).status, 200);
    await worker.done(id, { output: [] }, true);
    const { stream } = await readStream(jobs, id);
    assert.deepEqual(stream.pop(), { output: 'next' });
    for (const piece of stream) assert.ok(Buffer.byteLength(JSON.stringify(piece)) <= MEGABYTE);
    assert.deepEqual(
      stream.map(({ output: _, ...said }) => said),
      stream.map((_, index) => ({ part: index + 1, parts: stream.length, of: 'chunk' })),
    );
    assert.ok(stream.map(({ output }) => output).join('') === chunk, 'the chunk came back to the letter');
    worker.close();
  });

  test('a large stream comes in several answers, the end with the last', async () => {
    const jobs = await endpoint();
    const worker = jobs.worker();
    const id = await jobs.run();
    await worker.take();
    for (let n = 0; n < 20; n += 1) await worker.chunk(id, { output: String(n).padEnd(MEGABYTE - 100, '.') });
    await worker.done(id, { output: [] }, true);
    const pages: Envelope[] = [];
    while (pages.at(-1)?.status !== 'COMPLETED') pages.push(await readStream(jobs, id));
    assert.ok(pages.length > 1);
    assert.ok(
      pages.every(({ status, stream }) => stream.length > 0 && ['IN_PROGRESS', 'COMPLETED'].includes(status)),
    );
    assert.deepEqual(
      pages.flatMap(({ stream }) => stream.map(({ output }) => Number.parseInt(String(output), 10))),
      Array.from({ length: 20 }, (_, n) => n),
    );
    worker.close();
  });

  test('the output of a job that streamed nothing is cut like a chunk, and comes once', async () => {
    const jobs = await endpoint();
    const worker = jobs.worker();
    const output = '0123456789'.repeat(MEGABYTE);
    const id = await jobs.run();
    await worker.take();
    await worker.done(id, { output });
    const events = eventsOf(await followStream(jobs, id));
    const pages: Envelope[] = [];
    while (pages.at(-1)?.status !== 'COMPLETED') pages.push(await readStream(jobs, id));
    const chunks = pages.flatMap(({ stream }) => stream);
    assert.ok(pages.length > 1 && chunks.every((chunk) => JSON.stringify(chunk).length <= MEGABYTE));
    assert.ok(chunks.map((chunk) => chunk.output).join('') === output);
    assert.deepEqual(
      events.map((event) => event.id),
      chunks.map((_, index) => String(index + 1)),
    );
    assert.ok(events.map(({ data }) => (data as { output: string }).output).join('') === output);
    assert.deepEqual((await readStream(jobs, id)).stream, []);
    worker.close();
  });
}
