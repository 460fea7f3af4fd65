import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import type { AccessLevel } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import { hashApiKey } from '../../support/crypto.ts';
import type { Caller } from '../../domain/caller.ts';
import { ApiKeys } from './api-keys.ts';
import type { NewApiKey } from './api-keys.ts';

const refusedAs = (code: string) => (error: unknown) => error instanceof BerthError && error.code === code;

describe('keys', () => {
  let context: ServiceContext;
  let keys: ApiKeys;
  let ann: Caller;
  let bob: Caller;

  before(async () => {
    context = await createServiceContext();
    keys = new ApiKeys(context);
    ann = await context.account('ann');
    bob = await context.account('bob');
  });
  after(() => context.close());

  test('are shown once and stored as a hash', async () => {
    const { record, key } = await keys.create(ann, { name: 'mine', access: 'all' });
    assert.equal(record.hash, hashApiKey(key));
    assert.doesNotMatch(
      JSON.stringify([
        record,
        await keys.list(ann),
        await context.store.audit.list(ann.accountId, { limit: 10 }),
      ]),
      new RegExp(key),
    );
  });

  test('have the scopes of their access level; a restricted one only the given scopes', async () => {
    const made = async (access: AccessLevel, limits: Pick<NewApiKey, 'scopes' | 'endpoints'> = {}) =>
      (await keys.create(ann, { name: 'k', access, ...limits })).record;
    assert.deepEqual((await made('all')).scopes, { rest: 'write', graphql: 'write', serverless: 'write' });
    assert.deepEqual((await made('read-only')).scopes, { rest: 'read', graphql: 'read', serverless: 'read' });
    assert.deepEqual((await made('restricted', { scopes: { rest: 'read' } })).scopes, {
      rest: 'read',
      graphql: 'none',
      serverless: 'none',
    });
    assert.deepEqual((await made('restricted', { endpoints: ['e1'] })).endpoints, ['e1']);
    assert.equal((await made('all')).endpoints, null);
  });

  test('that are not restricted are not made or changed with limits that would not hold', async () => {
    const limits: Pick<NewApiKey, 'scopes' | 'endpoints'>[] = [
      { scopes: { rest: 'none' } },
      { endpoints: ['e1'] },
      { endpoints: [] },
    ];
    for (const access of ['all', 'read-only'] as const) {
      const { record } = await keys.create(ann, { name: 'wide', access });
      for (const limit of limits) {
        await assert.rejects(keys.create(ann, { name: 'k', access, ...limit }), refusedAs('rule'));
        await assert.rejects(keys.update(ann, record.id, limit), refusedAs('rule'));
      }
      await assert.rejects(
        keys.update(ann, (await keys.create(ann, { name: 'narrow', access: 'restricted' })).record.id, {
          access,
          endpoints: ['e1'],
        }),
        refusedAs('rule'),
      );
      const { scopes, endpoints } = record;
      assert.deepEqual(
        await keys.update(ann, record.id, { access, scopes, endpoints }),
        record,
        'what was shown, said again, changes nothing',
      );
    }
  });

  test('that become restricted lose the scopes that are not given', async () => {
    const { record } = await keys.create(ann, { name: 'wide', access: 'all' });
    const narrow = await keys.update(ann, record.id, { access: 'restricted', scopes: { rest: 'read' } });
    assert.deepEqual(narrow.scopes, { rest: 'read', graphql: 'none', serverless: 'none' });
    const wider = await keys.update(ann, record.id, { scopes: { graphql: 'read' }, endpoints: ['e1'] });
    assert.deepEqual(
      [wider.scopes, wider.endpoints],
      [{ rest: 'read', graphql: 'read', serverless: 'none' }, ['e1']],
    );
    const wide = await keys.update(ann, record.id, { access: 'all' });
    assert.deepEqual(
      [wide.scopes, wide.endpoints],
      [{ rest: 'write', graphql: 'write', serverless: 'write' }, null],
    );
    assert.deepEqual((await keys.update(ann, record.id, { access: 'restricted' })).scopes, {
      rest: 'none',
      graphql: 'none',
      serverless: 'none',
    });
  });

  test('can be managed only by keys with full access', async () => {
    const narrow: Caller = { ...ann, fullAccess: false };
    const [some] = await keys.list(narrow);
    assert.ok(some !== undefined);
    await assert.rejects(keys.create(narrow, { name: 'k', access: 'restricted' }), refusedAs('forbidden'));
    await assert.rejects(keys.update(narrow, some.id, { enabled: false }), refusedAs('forbidden'));
    await assert.rejects(keys.revoke(narrow, some.id), refusedAs('forbidden'));
  });

  test('of another account are not found, except by the operator', async () => {
    const [annsKey] = await keys.list(ann);
    assert.ok(annsKey !== undefined);
    await assert.rejects(keys.update(bob, annsKey.id, { name: 'taken over' }), refusedAs('not-found'));
    await assert.rejects(keys.revoke(bob, annsKey.id), refusedAs('not-found'));
    await assert.rejects(
      keys.create(bob, { name: 'k', access: 'all' }, ann.accountId),
      refusedAs('not-found'),
    );
    await assert.rejects(keys.list(bob, ann.accountId), refusedAs('not-found'));
    await assert.rejects(keys.list(context.root, 'nobody'), refusedAs('not-found'));
    await assert.rejects(
      keys.create(context.root, { name: 'k', access: 'all' }, 'nobody'),
      refusedAs('not-found'),
    );
    const { record } = await keys.create(
      context.root,
      { name: 'by the operator', access: 'all' },
      ann.accountId,
    );
    assert.equal(record.accountId, ann.accountId);
    assert.equal((await keys.update(context.root, record.id, { enabled: false })).enabled, false);
    await keys.revoke(context.root, record.id);
    assert.ok((await keys.list(context.root, ann.accountId)).every(({ id }) => id !== record.id));
    const told = (await context.store.audit.list(ann.accountId, { limit: 3 })).reverse();
    assert.deepEqual(
      told.map(({ action, resourceId, keyId }) => [action, resourceId, keyId]),
      ['create', 'update', 'revoke'].map((action) => [action, record.id, context.root.keyId]),
      'the account sees what was done to it, and by which key',
    );
  });

  test('need a name and an expiry in the future', async () => {
    const now = context.clock.now();
    for (const name of ['', '  ', 'x'.repeat(192)])
      await assert.rejects(keys.create(ann, { name, access: 'all' }), refusedAs('rule'));
    for (const expiresAt of [now, now - 1])
      await assert.rejects(keys.create(ann, { name: 'k', access: 'all', expiresAt }), refusedAs('rule'));
    assert.equal(
      (await keys.create(ann, { name: 'k', access: 'all', expiresAt: now + 1 })).record.expiresAt,
      now + 1,
    );
  });

  test('that have expired can still be renamed, disabled and extended', async () => {
    const { record } = await keys.create(ann, {
      name: 'short',
      access: 'all',
      expiresAt: context.clock.now() + 1000,
    });
    context.clock.advance(2000);
    assert.equal((await keys.update(ann, record.id, { name: 'over' })).name, 'over');
    assert.equal((await keys.update(ann, record.id, { enabled: false })).enabled, false);
    await assert.rejects(keys.update(ann, record.id, { expiresAt: context.clock.now() }), refusedAs('rule'));
    assert.equal((await keys.update(ann, record.id, { expiresAt: null })).expiresAt, null);
  });

  test('have an audit entry that lists the changed fields', async () => {
    const { record } = await keys.create(ann, { name: 'told', access: 'all' });
    await keys.update(ann, record.id, { name: 'retold', enabled: false });
    await keys.revoke(ann, record.id);
    const entries = (await context.store.audit.list(ann.accountId, { limit: 3 })).reverse();
    assert.deepEqual(
      entries.map(({ action, resource, resourceId, keyId }) => [action, resource, resourceId, keyId]),
      ['create', 'update', 'revoke'].map((action) => [action, 'API key', record.id, ann.keyId]),
    );
    assert.deepEqual(entries[1]?.changes, [
      { field: 'name', from: 'told', to: 'retold' },
      { field: 'enabled', from: true, to: false },
    ]);
  });

  test('the root key cannot be changed', async () => {
    const root = await context.store.keys.findRoot();
    assert.ok(root !== undefined);
    await assert.rejects(keys.revoke(context.root, root.id), refusedAs('rule'));
    await assert.rejects(keys.update(context.root, root.id, { enabled: false }), refusedAs('rule'));
  });
});
