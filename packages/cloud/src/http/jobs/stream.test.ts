import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { benches, HOUR, SECOND } from '../../jobs/test-bench.ts';
import { drainStream } from './stream.ts';

describe('a read of a stream', () => {
  const bench = benches('sqlite');

  test('waits as long as it shall for the first chunk, also when the clock is set back meanwhile', async (context) => {
    const on = bench();
    const { seq, id } = await on.submit();
    const tooLong = AbortSignal.timeout(2 * SECOND);
    const reading = drainStream(on.queue, on.id, seq, id, 50, tooLong);
    const now = Date.now();
    context.mock.method(Date, 'now', () => now - HOUR);
    assert.deepEqual(await reading, { status: 'IN_QUEUE', chunks: [] });
    assert.equal(tooLong.aborted, false);
  });
});
