import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../testing/src/service-context.ts';
import { BerthError } from '../support/errors.ts';
import type { Caller } from '../domain/caller.ts';
import { Authenticator } from './authenticator.ts';
import type { AccessRequest } from './authenticator.ts';
import { ApiKeys } from '../resources/keys/api-keys.ts';

const refusedAs = (code: string) => (error: unknown) => error instanceof BerthError && error.code === code;
const reading: AccessRequest = { interface: 'rest-v2', scope: 'rest', mode: 'read', requestId: 'r1' };
const writing: AccessRequest = { ...reading, mode: 'write' };

describe('the authenticator', () => {
  let context: ServiceContext;
  let authenticator: Authenticator;
  let keys: ApiKeys;
  let ann: Caller;

  before(async () => {
    context = await createServiceContext();
    authenticator = new Authenticator(context);
    keys = new ApiKeys(context);
    ann = await context.account('ann');
  });
  after(() => context.close());

  test('gives the account, key and interface of a caller', async () => {
    const { record, key } = await keys.create(ann, { name: 'k', access: 'all' });
    const { mayReadJobs, ...caller } = await authenticator.authorize(key, writing);
    assert.equal(mayReadJobs?.('any'), true);
    assert.deepEqual(caller, {
      accountId: ann.accountId,
      keyId: record.id,
      operator: false,
      fullAccess: true,
      expiresAt: null,
      interface: 'rest-v2',
      requestId: 'r1',
    });
  });

  test('rejects a missing, wrong or overlong key with the same error', async () => {
    const { key } = await keys.create(ann, { name: 'k', access: 'all' });
    for (const wrong of [
      undefined,
      '',
      'x',
      key.slice(0, -1),
      `${key}x`,
      key.toLowerCase(),
      ' ',
      'x'.repeat(100_000),
    ])
      await assert.rejects(authenticator.authorize(wrong, reading), refusedAs('unauthenticated'));
  });

  test('allows what the scopes allow', async () => {
    const { key } = await keys.create(ann, {
      name: 'k',
      access: 'restricted',
      scopes: { rest: 'read', serverless: 'write' },
      endpoints: ['e1'],
    });
    await authenticator.authorize(key, reading);
    await assert.rejects(authenticator.authorize(key, writing), refusedAs('forbidden'));
    await assert.rejects(
      authenticator.authorize(key, { ...reading, scope: 'graphql', interface: 'graphql' }),
      refusedAs('forbidden'),
    );
    await authenticator.authorize(key, {
      ...writing,
      scope: 'serverless',
      interface: 'jobs',
      endpointId: 'e1',
    });
    await assert.rejects(
      authenticator.authorize(key, { ...reading, scope: 'serverless', interface: 'jobs', endpointId: 'e2' }),
      refusedAs('forbidden'),
    );
  });

  test('gives operator rights to full-access keys of the root account only', async () => {
    const of = async (caller: Caller, access: 'all' | 'read-only'): Promise<Caller> =>
      authenticator.authorize((await keys.create(caller, { name: 'k', access })).key, reading);
    assert.equal((await of(context.root, 'all')).operator, true);
    assert.equal((await of(context.root, 'read-only')).operator, false);
    assert.equal((await of(ann, 'all')).operator, false);
    assert.equal((await of(ann, 'read-only')).fullAccess, false);
  });

  test('rejects a key at once after it expired or was disabled or revoked', async () => {
    const expiring = await keys.create(ann, {
      name: 'k',
      access: 'all',
      expiresAt: context.clock.now() + 1000,
    });
    await authenticator.authorize(expiring.key, reading);
    context.clock.advance(1000);
    await assert.rejects(authenticator.authorize(expiring.key, reading), refusedAs('unauthenticated'));

    const toggled = await keys.create(ann, { name: 'k', access: 'all' });
    await keys.update(ann, toggled.record.id, { enabled: false });
    await assert.rejects(authenticator.authorize(toggled.key, reading), refusedAs('unauthenticated'));
    await keys.update(ann, toggled.record.id, { enabled: true });
    await authenticator.authorize(toggled.key, reading);
    await keys.revoke(ann, toggled.record.id);
    await assert.rejects(authenticator.authorize(toggled.key, reading), refusedAs('unauthenticated'));
  });

  test('does not cache a key that was revoked while it was read', async () => {
    const { record, key } = await keys.create(ann, { name: 'k', access: 'all' });
    const lookedUp = Promise.withResolvers<void>();
    const revoked = Promise.withResolvers<void>();
    // A slow database: it reads the key, and answers after the key was revoked.
    const slow = new Authenticator({
      ...context,
      store: {
        ...context.store,
        keys: {
          ...context.store.keys,
          findByHash: async (hash) => {
            const found = await context.store.keys.findByHash(hash);
            lookedUp.resolve();
            await revoked.promise;
            return found;
          },
        },
      },
    });
    const admitted = slow.authorize(key, reading);
    await lookedUp.promise;
    await new ApiKeys(context).revoke(ann, record.id);
    revoked.resolve();
    await admitted;
    await assert.rejects(slow.authorize(key, reading), refusedAs('unauthenticated'));
  });

  test('a listener that subscribed later sees the new state of a changed key', async () => {
    const { record, key } = await keys.create(ann, { name: 'k', access: 'all' });
    const seen: Promise<unknown>[] = [];
    const unsubscribe = context.events.subscribe('keys.changed', () =>
      seen.push(
        authenticator.authorize(key, reading).then(
          () => 'admitted',
          (error: BerthError) => error.code,
        ),
      ),
    );
    await keys.update(ann, record.id, { name: 'renamed' });
    await keys.revoke(ann, record.id);
    unsubscribe();
    await keys.create(ann, { name: 'k', access: 'all' });
    assert.deepEqual(await Promise.all(seen), ['admitted', 'unauthenticated']);
  });

  test('saves when a key was last used, to the minute, without refused requests', async () => {
    const { record, key } = await keys.create(ann, { name: 'k', access: 'all' });
    const lastUsed = async (): Promise<number | null | undefined> =>
      (await context.store.keys.findInAnyAccount(record.id))?.lastUsedAt;
    const first = context.clock.now();
    await authenticator.authorize(key, reading);
    await authenticator.saveLastUsed();
    assert.equal(await lastUsed(), first);
    context.clock.advance(59_999);
    await authenticator.authorize(key, reading);
    await authenticator.saveLastUsed();
    assert.equal(await lastUsed(), first);
    context.clock.advance(1);
    await authenticator.authorize(key, reading);
    await keys.update(ann, record.id, { enabled: false });
    context.clock.advance(120_000);
    await assert.rejects(authenticator.authorize(key, reading), refusedAs('unauthenticated'));
    await authenticator.saveLastUsed();
    assert.equal(await lastUsed(), first + 60_000);
  });
});
