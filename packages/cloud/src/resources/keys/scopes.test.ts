import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { check } from '../../../../../tests/support/seed.ts';
import { ACCESS_LEVELS, GRANTS } from '../../store/records.ts';
import { grantOf, isLive, permits } from './scopes.ts';
import type { Family, Need } from './scopes.ts';

const FAMILIES: Family[] = ['rest', 'graphql', 'serverless'];
const grant = fc.constantFrom(...GRANTS);
const endpoint = fc.constantFrom('e1', 'e2', 'e3');
const key = fc.record({
  access: fc.constantFrom(...ACCESS_LEVELS),
  scopes: fc.record({ rest: grant, graphql: grant, serverless: grant }),
  endpoints: fc.option(fc.uniqueArray(endpoint)),
});
const family = fc.constantFrom(...FAMILIES);
const need = fc.constantFrom<Need>('read', 'write');

describe('what a key may do', () => {
  test('who may write may read', async () => {
    await check(
      fc.property(key, family, fc.option(endpoint, { nil: undefined }), (made, where, id) => {
        const granted = grantOf(made, where, id);
        assert.ok(!permits(granted, 'write') || permits(granted, 'read'));
      }),
    );
    assert.ok(!permits('none', 'read') && !permits('none', 'write') && !permits('read', 'write'));
  });

  test('a key with full access may do all, a read-only key reads all, whatever their scopes and endpoints say', async () => {
    await check(
      fc.property(key, family, need, fc.option(endpoint, { nil: undefined }), (made, where, what, id) => {
        assert.equal(permits(grantOf({ ...made, access: 'all' }, where, id), what), true);
        assert.equal(permits(grantOf({ ...made, access: 'read-only' }, where, id), what), what === 'read');
      }),
    );
  });

  test('a restricted key may do no more than its scopes say', async () => {
    await check(
      fc.property(key, family, need, fc.option(endpoint, { nil: undefined }), (made, where, what, id) => {
        const allowed = permits(grantOf({ ...made, access: 'restricted' }, where, id), what);
        assert.ok(!allowed || permits(made.scopes[where], what));
      }),
    );
  });

  test('a restricted key with a list of endpoints reaches these and no others', async () => {
    await check(
      fc.property(key, fc.uniqueArray(endpoint), endpoint, need, (made, endpoints, id, what) => {
        const allowed = permits(
          grantOf({ ...made, access: 'restricted', endpoints }, 'serverless', id),
          what,
        );
        assert.equal(allowed, endpoints.includes(id) && permits(made.scopes.serverless, what));
        assert.equal(
          grantOf({ ...made, access: 'restricted', endpoints: null }, 'serverless', id),
          made.scopes.serverless,
        );
      }),
    );
  });

  test('a narrower key never may what a wider one may not', async () => {
    const order = (granted: string): number => GRANTS.indexOf(granted as (typeof GRANTS)[number]);
    await check(
      fc.property(key, family, endpoint, grant, (made, where, id, lower) => {
        const restricted = { ...made, access: 'restricted' as const };
        const narrower =
          order(lower) <= order(made.scopes[where])
            ? { ...restricted, scopes: { ...made.scopes, [where]: lower } }
            : restricted;
        assert.ok(order(grantOf(narrower, where, id)) <= order(grantOf(restricted, where, id)));
      }),
    );
  });
});

describe('whether a key is good', () => {
  const instant = fc.integer({ min: 0, max: 2 ** 45 });

  test('a disabled one never is, and an expired one never is', async () => {
    await check(
      fc.property(fc.option(instant), instant, (expiresAt, now) =>
        assert.equal(isLive({ enabled: false, expiresAt }, now), false),
      ),
    );
    await check(
      fc.property(instant, fc.nat(), (expiresAt, later) =>
        assert.equal(isLive({ enabled: true, expiresAt }, expiresAt + later), false),
      ),
    );
  });

  test('an enabled one is until it expires, and one without an end always is', async () => {
    await check(
      fc.property(instant, fc.integer({ min: 1, max: 2 ** 30 }), (now, left) =>
        assert.equal(isLive({ enabled: true, expiresAt: now + left }, now), true),
      ),
    );
    await check(
      fc.property(instant, (now) => assert.equal(isLive({ enabled: true, expiresAt: null }, now), true)),
    );
  });
});
