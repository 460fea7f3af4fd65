import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import { parseMilliseconds, parseJobRequest, parseWait } from './job-request.ts';

const terms = (body: unknown): ReturnType<typeof parseJobRequest> =>
  parseJobRequest(typeof body === 'string' ? body : JSON.stringify(body));
const refuses = (body: unknown, text: RegExp): void =>
  assert.throws(
    () => terms(body),
    (error: unknown) => error instanceof BerthError && error.code === 'rule' && text.test(error.message),
    JSON.stringify(body),
  );

describe('a request', () => {
  test('without terms has none', () => {
    for (const body of [
      { input: {} },
      { input: false },
      { input: '' },
      { input: 0, policy: null, webhook: null, retention: null },
      { input: 0, policy: { executionTimeout: null, ttl: null, lowPriority: null } },
      { input: {}, policy: {}, unknown: { webhook: 1 } },
    ])
      assert.deepEqual(terms(body), {});
  });

  test('may set its times, which are moved into their bounds', () => {
    assert.deepEqual(terms({ input: {}, policy: { executionTimeout: 60_000, ttl: 600_000.4 } }), {
      executionTimeout: 60_000,
      ttl: 600_000,
    });
    assert.deepEqual(terms({ input: {}, policy: { executionTimeout: 1, ttl: 1 }, retention: -5 }), {
      executionTimeout: 5_000,
      ttl: 10_000,
      retention: 0,
    });
    assert.deepEqual(terms({ input: {}, policy: { executionTimeout: 1e15, ttl: 1e15, retention: 1e15 } }), {
      executionTimeout: 604_800_000,
      ttl: 604_800_000,
      retention: 604_800_000,
    });
    assert.deepEqual(
      terms('{"input":1,"policy":{"executionTimeout":-1e400,"ttl":1e400},"retention":1e400}'),
      { executionTimeout: 5_000, ttl: 604_800_000, retention: 604_800_000 },
    );
    assert.deepEqual(terms({ input: {}, retention: 7, policy: { retention: 9 } }), { retention: 7 });
  });

  test('may be of low priority and have a webhook, by either name', () => {
    assert.deepEqual(terms({ input: {}, policy: { lowPriority: true } }), { lowPriority: true });
    assert.deepEqual(terms({ input: {}, policy: { lowPriority: false } }), {});
    assert.deepEqual(terms({ input: {}, webhook: 'HTTPS://example.com/a?b=ü' }), {
      webhook: 'HTTPS://example.com/a?b=ü',
    });
    assert.deepEqual(terms({ input: {}, webhookV2: 'http://example.com' }), {
      webhook: 'http://example.com',
    });
  });

  test('must be an object with an input', () => {
    refuses('', /^the body is empty/);
    for (const text of ['{', '{"input":NaN}', '{input:1}', 'input=1'])
      refuses(text, /^the body is not valid JSON$/);
    for (const body of ['[]', '1', 'null', '"x"'])
      refuses(body, /^the body must be a JSON object with "input"$/);
    for (const body of [{}, { input: null }, { inputs: {} }]) refuses(body, /^the body needs "input"/);
  });

  test('refuses fields of a wrong type', () => {
    for (const policy of ['x', [], 1, true]) refuses({ input: {}, policy }, /^policy must be an object$/);
    for (const value of ['5', true, {}, []]) {
      refuses({ input: {}, policy: { ttl: value } }, /^policy\.ttl must be a number of milliseconds$/);
      refuses(
        { input: {}, policy: { executionTimeout: value } },
        /^policy\.executionTimeout must be a number/,
      );
      refuses({ input: {}, retention: value }, /^retention must be a number/);
    }
    for (const value of ['true', 1, 0, {}])
      refuses({ input: {}, policy: { lowPriority: value } }, /^policy\.lowPriority must be true or false$/);
    for (const webhook of ['x', 'ftp://a', '//a', 'http://', 1, {}, 'http://a/\u0000', 'http://a\nb'])
      refuses({ input: {}, webhook }, /^webhook must be an http or https address$/);
  });

  test('has a webhook without a user name and password, which no delivery would carry', () => {
    for (const address of ['http://user:word@example.com/', 'https://user@example.com/a'])
      refuses({ input: {}, webhook: address }, /^webhook has a user name or password/);
  });

  test('has a webhook of at most 8192 characters', () => {
    const address = (length: number): string => 'http://a/'.padEnd(length, 'x');
    assert.deepEqual(terms({ input: {}, webhook: address(8192) }), { webhook: address(8192) });
    for (const name of ['webhook', 'webhookV2'])
      refuses({ input: {}, [name]: address(8193) }, /^webhook has at most 8192 characters$/);
  });
});

describe('a wait', () => {
  const wait = (query: string): number => parseWait(new URLSearchParams(query));

  test('is moved into its bounds', () => {
    assert.deepEqual(
      [
        wait(''),
        wait('wait=5000'),
        wait('wait=1'),
        wait('wait=-9'),
        wait('wait=999999999'),
        wait('wait=1500.6'),
      ],
      [90_000, 5_000, 1_000, 1_000, 300_000, 1_501],
    );
    assert.deepEqual(
      [wait('wait=99999999999999999999'), wait(`wait=${'9'.repeat(400)}`), wait(`wait=-${'9'.repeat(400)}`)],
      [300_000, 300_000, 1_000],
    );
    assert.equal(parseWait(new URLSearchParams('wait=0'), 4_000, { minimum: 0, maximum: 9 }), 0);
  });

  test('must be a number', () => {
    for (const text of ['', 'abc', '1e3', ' 5', '5 ', '0x5', 'NaN', 'Infinity', '1,5', '-', '1.'])
      assert.throws(
        () => parseMilliseconds(text, 'wait'),
        /^BerthError: wait must be a number of milliseconds, got /,
      );
  });
});
