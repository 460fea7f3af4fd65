import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { queueFixtures, HOUR, SECOND } from '../../queue/job-queue.fixture.ts';
import type { Response } from '../raw-http.ts';
import { READERS_PER_TURN, readStreamPage, sendStreamEvents } from './job-stream.ts';

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

describe('readers of events', () => {
  const bench = queueFixtures('sqlite');

  test('take turns when many of them are woken at once', async () => {
    const on = bench();
    const { seq, id } = await on.submit();
    await on.takeOne('w1');
    const leaving = new AbortController();
    const sent: string[] = [];
    const { promise: allSent, resolve } = Promise.withResolvers<void>();
    const accounts = [...Array.from({ length: 200 }, () => 'flooder'), 'other'];
    let waiting = 0;
    const { promise: allWait, resolve: nobodyLeft } = Promise.withResolvers<void>();
    const reading = accounts.map((accountId) => {
      const write = (text: string): boolean => {
        if (text.startsWith(': waiting')) {
          waiting += 1;
          if (waiting === accounts.length) nobodyLeft();
        } else if (sent.push(accountId) === accounts.length) resolve();
        return true;
      };
      const response = { writeHead: () => undefined, write, end: () => undefined } as unknown as Response;
      const reader = { accountId, response, signal: leaving.signal };
      return sendStreamEvents(on.queue, on.id, seq, id, { attempt: 1, number: 0 }, reader);
    });
    await allWait;
    await on.queue.streams.append(on.id, seq, { workerId: 'w1' }, ['"news"']);
    await allSent;
    assert.ok(sent.indexOf('other') < READERS_PER_TURN, `${sent.indexOf('other')} came before`);
    leaving.abort();
    await Promise.all(reading);
  });
});
