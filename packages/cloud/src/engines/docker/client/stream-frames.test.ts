import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FrameParser } from './stream-frames.ts';

const STREAMS = { stdout: 1, stderr: 2 } as const;

test('frames are found again, however the stream is split', () => {
  const frame = fc.record(
    {
      stream: fc.constantFrom('stdout' as const, 'stderr' as const),
      payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    },
    { noNullPrototype: true },
  );
  fc.assert(
    fc.property(fc.array(frame), fc.array(fc.nat(2_000)), (frames, cuts) => {
      const bytes = Buffer.concat(
        frames.flatMap(({ stream, payload }) => {
          const header = Buffer.alloc(8);
          header.writeUInt8(STREAMS[stream], 0);
          header.writeUInt32BE(payload.length, 4);
          return [header, payload];
        }),
      );
      const offsets = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
      const parser = new FrameParser();
      const found = offsets
        .slice(1)
        .flatMap((end, index) => parser.push(bytes.subarray(offsets[index], end)))
        .map(({ stream, payload }) => ({ stream, payload: Buffer.from(payload) }));
      assert.deepEqual(found, frames);
    }),
  );
});

test('a frame that the daemon did not finish is left out', () => {
  const parser = new FrameParser();
  assert.deepEqual(parser.push(Buffer.from([1, 0, 0, 0, 0, 0, 0, 5, 104, 101])), []);
});
