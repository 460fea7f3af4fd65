import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLogQuery } from './log-events.v2.ts';

const SINCE = '2026-01-02T03:04:05.000Z';
const LATER = '2026-01-02T03:04:06.000Z';

test('a log begins after the last line that its reader had, else after a time, else with the last lines', () => {
  const begins = (since: string | undefined, lastEventId: string | undefined): unknown => {
    const { follow: _, ...begin } = readLogQuery(
      { tail: 7, ...(since !== undefined && { since }) },
      lastEventId,
    );
    return begin;
  };
  assert.deepEqual(begins(SINCE, `${LATER}/000000000012`), { after: { seq: 12 } });
  assert.deepEqual(begins(SINCE, LATER), { after: { ts: Date.parse(LATER) } });
  assert.deepEqual(begins(SINCE, undefined), { after: { ts: Date.parse(SINCE) } });
  assert.deepEqual(begins(undefined, undefined), { tail: 7 });
  for (const unreadable of ['', 'nonsense']) {
    assert.deepEqual(begins(SINCE, unreadable), { after: { ts: Date.parse(SINCE) } });
    assert.deepEqual(begins(undefined, unreadable), { tail: 7 });
  }
});

test('older lines are read up to an event, and are not followed', () => {
  const before = `${SINCE}/000000000012`;
  assert.deepEqual(readLogQuery({ before, tail: 5 }, undefined), {
    follow: false,
    before: { seq: 12 },
    tail: 5,
  });
  assert.deepEqual(readLogQuery({ before: '12', since: SINCE }, undefined), {
    follow: false,
    before: { seq: 12 },
    after: { ts: Date.parse(SINCE) },
  });
});
