import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiResponse } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';

/** The numbers of a RateLimit header by window: what is left, and the seconds until it is whole again. */
function left({ headers }: ApiResponse): Record<string, { r: number; t: number }> {
  const windows = (headers.get('ratelimit') ?? '')
    .split(', ')
    .map((part) => /^"(\w+)";r=(\d+);t=(\d+)$/.exec(part));
  return Object.fromEntries(
    windows.map((window) => [window?.[1] ?? '', { r: Number(window?.[2]), t: Number(window?.[3]) }]),
  );
}

for (const kind of DATABASES) {
  describe(`rate limits, on ${kind}`, () => {
    const fixture = serverFixture(kind, {
      BERTH_RATE_LIMIT_PER_MINUTE: '6',
      BERTH_RATE_LIMIT_PER_HOUR: '9',
      BERTH_RATE_LIMIT_PER_DAY: '1000',
    });

    test('count down on every answer to a valid key, refusals included', async () => {
      const ann = await fixture.createAccount('ann');
      const first = await ann.call('GET', '/v2/account');
      assert.equal(
        first.headers.get('ratelimit-policy'),
        '"minute";q=6;w=60, "hour";q=9;w=3600, "day";q=1000;w=86400',
      );
      assert.deepEqual(
        Object.fromEntries(Object.entries(left(first)).map(([window, { r }]) => [window, r])),
        { minute: 5, hour: 8, day: 999 },
      );
      assert.ok((left(first)['minute']?.t ?? 0) <= 60 && (left(first)['minute']?.t ?? 0) > 50);
      const refusals: [string, string, unknown, number][] = [
        ['GET', '/v2/templates/unknown', undefined, 404],
        ['POST', '/v2/templates', {}, 422],
        ['POST', '/v2/templates', '{', 400],
        ['GET', '/v2/accounts', undefined, 403],
      ];
      for (const [index, [method, path, body, status]] of refusals.entries()) {
        const answer = await ann.call(method, path, body);
        assert.equal(answer.status, status);
        assert.equal(left(answer)['minute']?.r, 4 - index, `${method} ${path}`);
      }
    });

    test('count down also where a key may not do what it asks for', async () => {
      const frank = await fixture.createAccount('frank');
      const { body } = await frank.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'narrow',
        access: 'RESTRICTED',
        scopes: { rest: 'READ' },
      });
      const narrow = fixture.client(body.key);
      for (const r of [5, 4]) {
        const refused = await narrow.call('POST', '/v2/templates', { name: 'x', image: 'x' });
        assert.deepEqual([refused.status, left(refused)['minute']?.r], [403, r]);
      }
      assert.equal(left(await narrow.call('GET', '/v2/account'))['minute']?.r, 3);
    });

    test('refuse with 429 once a window is used up, say when to come back, and count that no further', async () => {
      const bob = await fixture.createAccount('bob');
      for (let call = 0; call < 6; call += 1)
        assert.equal((await bob.call('GET', '/v2/account')).status, 200);
      for (let call = 0; call < 3; call += 1) {
        const refused = await bob.call<{ title: string; status: number; detail: string }>(
          'GET',
          '/v2/account',
        );
        assert.deepEqual(
          [refused.status, refused.headers.get('content-type')],
          [429, 'application/problem+json; charset=utf-8'],
        );
        assert.deepEqual([refused.body.title, refused.body.status], ['Too Many Requests', 429]);
        assert.match(refused.body.detail, /^rate limit exceeded for the minute window/);
        assert.equal(refused.headers.get('retry-after'), String(left(refused)['minute']?.t));
        assert.deepEqual([left(refused)['minute']?.r, left(refused)['hour']?.r], [0, 3]);
      }
    });

    test('let no write through that they refuse', async () => {
      const carol = await fixture.createAccount('carol');
      for (let call = 0; call < 6; call += 1) await carol.call('GET', '/v2/account');
      assert.equal((await carol.call('POST', '/v2/templates', { name: 'late', image: 'x' })).status, 429);
      assert.deepEqual((await carol.call('GET', '/v1/templates')).body, []);
    });

    test('are kept for each key apart, also when all ask at once', async () => {
      const dora = await fixture.createAccount('dora');
      const { body } = await dora.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'other',
        access: 'ALL',
      });
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => fixture.client(body.key).call('GET', '/v2/account')),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 6);
      assert.equal((await dora.call('GET', '/v2/account')).status, 200);
    });

    test('are not shown without a valid key, nor counted where no key is required', async () => {
      for (const answer of [
        await fixture.client('rpa_wrong').call('GET', '/v2/account'),
        await fixture.client(undefined).call('GET', '/v2/account'),
        await fixture.client(undefined).call('GET', '/v2/openapi.json'),
      ]) {
        assert.equal(
          answer.headers.get('ratelimit') ??
            answer.headers.get('ratelimit-policy') ??
            answer.headers.get('retry-after'),
          null,
        );
      }
    });

    test('apply to v2, and the older interfaces know none', async () => {
      const emil = await fixture.createAccount('emil');
      for (let call = 0; call < 12; call += 1) {
        const { status, headers } = await emil.call('GET', '/v1/templates');
        assert.deepEqual([status, headers.get('ratelimit')], [200, null]);
      }
    });
  });

  describe(`rate limits that are off, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off', BERTH_RATE_LIMIT_PER_MINUTE: '1' });

    test('refuse no request and set no header', async () => {
      for (let call = 0; call < 5; call += 1) {
        const { status, headers } = await fixture.operator.call('GET', '/v2/account');
        assert.deepEqual(
          [status, headers.get('ratelimit'), headers.get('ratelimit-policy')],
          [200, null, null],
        );
      }
    });
  });
}
