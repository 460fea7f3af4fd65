import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { ACCESS_LEVELS, SCOPE_LEVELS } from '../domain/records.ts';
import { scopeLevelOf, isKeyActive, permits } from './scopes.ts';
import type { ScopeName, AccessMode } from './scopes.ts';

const FAMILIES: ScopeName[] = ['rest', 'graphql', 'serverless'];
const grant = fc.constantFrom(...SCOPE_LEVELS);
const endpoint = fc.constantFrom('e1', 'e2', 'e3');
const key = fc.record({
  access: fc.constantFrom(...ACCESS_LEVELS),
  scopes: fc.record({ rest: grant, graphql: grant, serverless: grant }),
  endpoints: fc.option(fc.uniqueArray(endpoint)),
});
const family = fc.constantFrom(...FAMILIES);
const need = fc.constantFrom<AccessMode>('read', 'write');

describe('what a key may do', () => {
  test('write access includes read access', async () => {
    await checkProperty(
      fc.property(key, family, fc.option(endpoint, { nil: undefined }), (made, where, id) => {
        const granted = scopeLevelOf(made, where, id);
        assert.ok(!permits(granted, 'write') || permits(granted, 'read'));
      }),
    );
    assert.ok(!permits('none', 'read') && !permits('none', 'write') && !permits('read', 'write'));
  });

  test('scopes do not restrict full-access and read-only keys', async () => {
    await checkProperty(
      fc.property(key, family, need, fc.option(endpoint, { nil: undefined }), (made, where, what, id) => {
        assert.equal(permits(scopeLevelOf({ ...made, access: 'all' }, where, id), what), true);
        assert.equal(
          permits(scopeLevelOf({ ...made, access: 'read-only' }, where, id), what),
          what === 'read',
        );
      }),
    );
  });

  test('a restricted key is limited to its scopes', async () => {
    await checkProperty(
      fc.property(key, family, need, fc.option(endpoint, { nil: undefined }), (made, where, what, id) => {
        const allowed = permits(scopeLevelOf({ ...made, access: 'restricted' }, where, id), what);
        assert.ok(!allowed || permits(made.scopes[where], what));
      }),
    );
  });

  test('a restricted key with a list of endpoints reaches only those', async () => {
    await checkProperty(
      fc.property(key, fc.uniqueArray(endpoint), endpoint, need, (made, endpoints, id, what) => {
        const allowed = permits(
          scopeLevelOf({ ...made, access: 'restricted', endpoints }, 'serverless', id),
          what,
        );
        assert.equal(allowed, endpoints.includes(id) && permits(made.scopes.serverless, what));
        assert.equal(
          scopeLevelOf({ ...made, access: 'restricted', endpoints: null }, 'serverless', id),
          made.scopes.serverless,
        );
      }),
    );
  });

  test('a narrower key never allows more than a wider one', async () => {
    const order = (granted: string): number => SCOPE_LEVELS.indexOf(granted as (typeof SCOPE_LEVELS)[number]);
    await checkProperty(
      fc.property(key, family, endpoint, grant, (made, where, id, lower) => {
        const restricted = { ...made, access: 'restricted' as const };
        const narrower =
          order(lower) <= order(made.scopes[where])
            ? { ...restricted, scopes: { ...made.scopes, [where]: lower } }
            : restricted;
        assert.ok(order(scopeLevelOf(narrower, where, id)) <= order(scopeLevelOf(restricted, where, id)));
      }),
    );
  });
});

describe('whether a key is good', () => {
  const instant = fc.integer({ min: 0, max: 2 ** 45 });

  test('disabled and expired keys are invalid', async () => {
    await checkProperty(
      fc.property(fc.option(instant), instant, (expiresAt, now) =>
        assert.equal(isKeyActive({ enabled: false, expiresAt }, now), false),
      ),
    );
    await checkProperty(
      fc.property(instant, fc.nat(), (expiresAt, later) =>
        assert.equal(isKeyActive({ enabled: true, expiresAt }, expiresAt + later), false),
      ),
    );
  });

  test('an enabled key is valid until it expires', async () => {
    await checkProperty(
      fc.property(instant, fc.integer({ min: 1, max: 2 ** 30 }), (now, left) =>
        assert.equal(isKeyActive({ enabled: true, expiresAt: now + left }, now), true),
      ),
    );
    await checkProperty(
      fc.property(instant, (now) => assert.equal(isKeyActive({ enabled: true, expiresAt: null }, now), true)),
    );
  });
});
