import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { parseServerSentEvents } from './sse-parser.ts';
import type { ReceivedEvent } from './sse-parser.ts';

async function read(...parts: (string | Uint8Array)[]): Promise<ReceivedEvent[]> {
  const found: ReceivedEvent[] = [];
  const bytes = parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part));
  for await (const event of parseServerSentEvents(ReadableStream.from(bytes))) found.push(event);
  return found;
}

test('events have an id and data; comments are skipped', async () => {
  assert.deepEqual(await read(': ping\n\nid: 1\ndata: {"a":1}\n\n: ping\n\nid:2\ndata:x\ndata: y\n\n'), [
    { id: '1', data: '{"a":1}' },
    { id: '2', data: 'x\ny' },
  ]);
});

test('an incomplete event is dropped', async () => {
  assert.deepEqual(await read('data: whole\n\ndata: half'), [{ id: undefined, data: 'whole' }]);
});

test('line ends and chunk boundaries do not change the events', async () => {
  const text = 'id: 1\r\ndata: äöü 😀\r\n\r\n: x\n\nid: 2\ndata: b\n\n';
  const expected = await read(text);
  assert.equal(expected.length, 2);
  const bytes = Buffer.from(text);
  await checkProperty(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: bytes.length })), async (cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      assert.deepEqual(
        await read(...edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge))),
        expected,
      );
    }),
  );
});
