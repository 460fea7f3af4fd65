import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { queueFixtures, HOUR, SECOND } from '../../queue/job-queue.fixture.ts';
import { readStreamPage } from './job-stream.ts';

describe('a read of a stream', () => {
  const bench = queueFixtures('sqlite');

  test('waits as long as it shall for the first chunk, also when the clock is set back meanwhile', async (context) => {
    const on = bench();
    const { seq, id } = await on.submit();
    const tooLong = AbortSignal.timeout(2 * SECOND);
    const reading = readStreamPage(on.queue, on.id, seq, id, 50, tooLong);
    const now = Date.now();
    context.mock.method(Date, 'now', () => now - HOUR);
    assert.deepEqual(await reading, { status: 'IN_QUEUE', chunks: [] });
    assert.equal(tooLong.aborted, false);
  });
});
