import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageError } from './cli.errors.ts';
import { parseExpiry } from './key-expiry.ts';

const now = Date.UTC(2026, 0, 1);

test('reads durations from now and instants', () => {
  assert.equal(parseExpiry('30m', now), '2026-01-01T00:30:00.000Z');
  assert.equal(parseExpiry('12h', now), '2026-01-01T12:00:00.000Z');
  assert.equal(parseExpiry('7d', now), '2026-01-08T00:00:00.000Z');
  assert.equal(parseExpiry('2026-12-31T12:00:00+02:00', now), '2026-12-31T10:00:00.000Z');
  assert.equal(parseExpiry('2028-02-29 12:00:00z', now), '2028-02-29T12:00:00.000Z');
});

test('refuses other texts and times in the past', () => {
  for (const when of [
    '',
    'soon',
    '7',
    '-1d',
    '1.5h',
    '2026-12-31',
    '2026-12-31T12:00:00',
    '2026-13-01T00:00:00Z',
    '2027-02-30T00:00:00Z',
    '2027-02-29 00:00:00Z',
    '9999-12-31T23:59:59-10:00',
  ]) {
    assert.throws(() => parseExpiry(when, now), UsageError, when);
  }
  assert.throws(() => parseExpiry('2025-12-31T00:00:00Z', now), /not in the future/);
  assert.throws(() => parseExpiry('0m', now), /not in the future/);
  for (const when of ['9999999d', '999999999w'])
    assert.throws(() => parseExpiry(when, now), /after the year 9999/, when);
});
