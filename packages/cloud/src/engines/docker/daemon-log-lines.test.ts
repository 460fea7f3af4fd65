import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FrameParser } from './client/stream-frames.ts';
import { LineAssembler } from './daemon-log-lines.ts';

const STAMP = '2026-01-02T03:04:05.678901234Z';

function frame(stream: 1 | 2, text: string): Buffer {
  const payload = Buffer.from(`${STAMP} ${text}`);
  const header = Buffer.alloc(8);
  header.writeUInt8(stream, 0);
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

function read(chunks: readonly Buffer[]): string[] {
  const [frames, lines] = [new FrameParser(), new LineAssembler()];
  return [...chunks.flatMap((chunk) => lines.push(frames.push(chunk))), ...lines.rest(0)].map(({ line }) =>
    line.toString(),
  );
}

test('lines are assembled from frames, however the stream is split', () => {
  const bytes = Buffer.concat([
    frame(1, 'one\n'),
    frame(1, 'half '),
    frame(2, 'error\r\n'),
    frame(1, 'a line\n'),
    frame(1, '\n'),
    frame(2, 'no end'),
  ]);
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
      const offsets = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const chunks = offsets.slice(1).map((end, index) => bytes.subarray(offsets[index], end));
      assert.deepEqual(read(chunks), ['one', 'error', 'half a line', '', 'no end']);
    }),
  );
});

test('a line has the timestamp of the daemon, and a long one is split', () => {
  const [frames, lines] = [new FrameParser(), new LineAssembler()];
  const [line] = lines.push(frames.push(frame(1, 'one\n')));
  assert.deepEqual([line?.stamp, line?.ts], [STAMP, Date.UTC(2026, 0, 2, 3, 4, 5, 678)]);
  const pieces = read(Array.from({ length: 10 }, () => frame(1, 'x'.repeat(16 * 1024))));
  assert.deepEqual(
    pieces.map(({ length }) => length / 1024),
    [64, 64, 32],
  );
});
