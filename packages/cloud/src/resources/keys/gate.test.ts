import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { freshContext } from '../../../../../tests/support/context.ts';
import type { TestContext } from '../../../../../tests/support/context.ts';
import { BerthError } from '../../support/errors.ts';
import type { Caller } from '../caller.ts';
import { Gate } from './gate.ts';
import type { Visit } from './gate.ts';
import { Keys } from './keys.ts';

const refusedAs = (code: string) => (error: unknown) => error instanceof BerthError && error.code === code;
const reading: Visit = { interface: 'rest-v2', family: 'rest', need: 'read', requestId: 'r1' };
const writing: Visit = { ...reading, need: 'write' };

describe('the gate', () => {
  let context: TestContext;
  let gate: Gate;
  let keys: Keys;
  let ann: Caller;

  before(async () => {
    context = await freshContext();
    gate = new Gate(context);
    keys = new Keys(context, () => gate.forget());
    ann = await context.account('ann');
  });
  after(() => context.close());

  test('knows who holds a key, and through which interface they came', async () => {
    const { record, key } = await keys.create(ann, { name: 'k', access: 'all' });
    assert.deepEqual(await gate.admit(key, writing), {
      accountId: ann.accountId,
      keyId: record.id,
      operator: false,
      fullAccess: true,
      interface: 'rest-v2',
      requestId: 'r1',
    });
  });

  test('answers a missing, a wrong and an endless key alike: who is not known does not come in', async () => {
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
      await assert.rejects(gate.admit(wrong, reading), refusedAs('unauthenticated'));
  });

  test('lets in what the scopes allow', async () => {
    const { key } = await keys.create(ann, {
      name: 'k',
      access: 'restricted',
      scopes: { rest: 'read', serverless: 'write' },
      endpoints: ['e1'],
    });
    await gate.admit(key, reading);
    await assert.rejects(gate.admit(key, writing), refusedAs('forbidden'));
    await assert.rejects(
      gate.admit(key, { ...reading, family: 'graphql', interface: 'graphql' }),
      refusedAs('forbidden'),
    );
    await gate.admit(key, { ...writing, family: 'serverless', interface: 'jobs', endpointId: 'e1' });
    await assert.rejects(
      gate.admit(key, { ...reading, family: 'serverless', interface: 'jobs', endpointId: 'e2' }),
      refusedAs('forbidden'),
    );
  });

  test('makes an operator of a full key of the root account, and of no other', async () => {
    const of = async (caller: Caller, access: 'all' | 'read-only'): Promise<Caller> =>
      gate.admit((await keys.create(caller, { name: 'k', access })).key, reading);
    assert.equal((await of(context.root, 'all')).operator, true);
    assert.equal((await of(context.root, 'read-only')).operator, false);
    assert.equal((await of(ann, 'all')).operator, false);
    assert.equal((await of(ann, 'read-only')).fullAccess, false);
  });

  test('closes at once: on expiry, on disabling, on revoking', async () => {
    const expiring = await keys.create(ann, {
      name: 'k',
      access: 'all',
      expiresAt: context.clock.now() + 1000,
    });
    await gate.admit(expiring.key, reading);
    context.clock.advance(1000);
    await assert.rejects(gate.admit(expiring.key, reading), refusedAs('unauthenticated'));

    const toggled = await keys.create(ann, { name: 'k', access: 'all' });
    await keys.update(ann, toggled.record.id, { enabled: false });
    await assert.rejects(gate.admit(toggled.key, reading), refusedAs('unauthenticated'));
    await keys.update(ann, toggled.record.id, { enabled: true });
    await gate.admit(toggled.key, reading);
    await keys.revoke(ann, toggled.record.id);
    await assert.rejects(gate.admit(toggled.key, reading), refusedAs('unauthenticated'));
  });

  test('does not remember a key that was revoked while it was looked up', async () => {
    const { record, key } = await keys.create(ann, { name: 'k', access: 'all' });
    const lookedUp = Promise.withResolvers<void>();
    const revoked = Promise.withResolvers<void>();
    // A database that takes its time: it has read the key, and answers once the key is gone.
    const slow = new Gate({
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
    const admitted = slow.admit(key, reading);
    await lookedUp.promise;
    await new Keys(context, () => slow.forget()).revoke(ann, record.id);
    revoked.resolve();
    await admitted;
    await assert.rejects(slow.admit(key, reading), refusedAs('unauthenticated'));
  });

  test('tells whoever watches that keys have changed, until they leave', async () => {
    const { record, key } = await keys.create(ann, { name: 'k', access: 'all' });
    const seen: Promise<unknown>[] = [];
    const leave = gate.watch(() =>
      seen.push(
        gate.admit(key, reading).then(
          () => 'admitted',
          (error: BerthError) => error.code,
        ),
      ),
    );
    await keys.update(ann, record.id, { name: 'renamed' });
    await keys.revoke(ann, record.id);
    leave();
    await keys.create(ann, { name: 'k', access: 'all' });
    assert.deepEqual(await Promise.all(seen), ['admitted', 'unauthenticated']);
  });

  test('notes when a key was last used, to the minute, and not what it was refused', async () => {
    const { record, key } = await keys.create(ann, { name: 'k', access: 'all' });
    const lastUsed = async (): Promise<number | null | undefined> =>
      (await context.store.keys.findAnywhere(record.id))?.lastUsedAt;
    const first = context.clock.now();
    await gate.admit(key, reading);
    await gate.noteUses();
    assert.equal(await lastUsed(), first);
    context.clock.advance(59_999);
    await gate.admit(key, reading);
    await gate.noteUses();
    assert.equal(await lastUsed(), first);
    context.clock.advance(1);
    await gate.admit(key, reading);
    await keys.update(ann, record.id, { enabled: false });
    context.clock.advance(120_000);
    await assert.rejects(gate.admit(key, reading), refusedAs('unauthenticated'));
    await gate.noteUses();
    assert.equal(await lastUsed(), first + 60_000);
  });
});
