import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERROR_PREFIX_CHARS, errorFingerprint, errorText } from './error-fingerprint.ts';

const pythonError = (message: string, traceback = 'Traceback …'): string =>
  JSON.stringify(
    JSON.stringify({
      error_type: "<class 'ValueError'>",
      error_message: message,
      error_traceback: traceback,
      worker_id: 'abc123',
    }),
  );
const fingerprintOf = (error: string): string => errorFingerprint(error).fingerprint;

test('errors that differ in ids, numbers, paths and addresses have one fingerprint', () => {
  const same: [string, string][] = [
    ['row 17 of 300', 'row 4 of 12'],
    ['took 1.5 s, 10:30:01', 'took 22.25 s, 09:01:59'],
    ['no file /tmp/job-1/in.png', 'no file /data/x/y/out.jpg'],
    ['no file C:\\work\\a.txt', 'no file D:\\b.txt'],
    ['GET https://a.example/x?id=1 failed', 'GET http://b.example/y failed'],
    [
      'job sync-0b1c2d3e-4f50-8a1b-9c2d-0123456789ab-u1 is gone',
      'job 1b1c2d3e-4f50-8a1b-9c2d-0123456789ab-u2 is gone',
    ],
    ['object at 0x7f3a10', 'object at 0x55aa'],
    ['pod k3x9q0zz1 left', 'pod m8y2w4aa7 left'],
    ['two  words\n more', 'two words more'],
  ];
  for (const [one, other] of same)
    assert.equal(fingerprintOf(pythonError(one)), fingerprintOf(pythonError(other)), `${one} | ${other}`);
});

test('other messages and other types have other fingerprints', () => {
  const texts = [
    'out of memory',
    'no such model',
    'ValueError: out of memory',
    'TypeError: out of memory',
    '',
  ];
  const all = texts.map((text) => fingerprintOf(JSON.stringify(text)));
  assert.equal(new Set(all).size, texts.length);
});

test('type and message are found in every form of an error', () => {
  const expected = { type: 'ValueError', message: 'bad size <n>' };
  for (const error of [
    pythonError('bad size 3'),
    JSON.stringify('ValueError: bad size 4'),
    JSON.stringify('Traceback (most recent call last):\n  File "/a.py", line 3\nValueError: bad size 5'),
    JSON.stringify({ type: 'ValueError', message: 'bad size 6' }),
    JSON.stringify({ name: 'ValueError', error: 'bad size 7', code: 9 }),
  ]) {
    const { type, message } = errorFingerprint(error);
    assert.deepEqual({ type, message }, expected, error);
  }
  assert.deepEqual(errorFingerprint('[1,2]').message, '[<n>]');
  assert.equal(errorText(pythonError('bad size 3')), 'ValueError: bad size 3');
  assert.equal(errorText('"no luck"'), 'no luck');
});

test('the first part of a long error is enough', () => {
  const long = pythonError('bad size 3', 'x\n"\\'.repeat(5_000));
  for (const length of [ERROR_PREFIX_CHARS, 400, 401, 402, 403, 404, 405])
    assert.equal(fingerprintOf(long.slice(0, length)), fingerprintOf(pythonError('bad size 4')), `${length}`);
});
