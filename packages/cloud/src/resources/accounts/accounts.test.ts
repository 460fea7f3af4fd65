import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { BerthError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import { Accounts } from './accounts.ts';

const refusedAs = (code: string) => (error: unknown) => error instanceof BerthError && error.code === code;

describe('accounts', () => {
  let context: ServiceContext;
  let accounts: Accounts;
  let ann: Caller;

  before(async () => {
    context = await createServiceContext();
    accounts = new Accounts(context);
    ann = await context.account('ann');
  });
  after(() => context.close());

  test('are created with a key that has full access', async () => {
    const { account, key } = await accounts.create(context.root, 'team');
    const caller = await new Authenticator(context).authorize(key, {
      interface: 'rest-v2',
      scope: 'rest',
      mode: 'write',
      requestId: 'r',
    });
    assert.deepEqual(await accounts.getOwn(caller), account);
    assert.deepEqual([caller.accountId, caller.fullAccess, caller.operator], [account.id, true, false]);
  });

  test('can be created and listed only by the operator', async () => {
    await assert.rejects(accounts.create(ann, 'mine'), refusedAs('forbidden'));
    await assert.rejects(async () => accounts.list(ann), refusedAs('forbidden'));
    assert.deepEqual((await accounts.list(context.root)).map(({ name }) => name).sort(), [
      'ann',
      'root',
      'team',
    ]);
  });

  test('have a unique name', async () => {
    await assert.rejects(accounts.create(context.root, 'ann'), refusedAs('conflict'));
    for (const name of ['', ' ', 'x'.repeat(192)])
      await assert.rejects(accounts.create(context.root, name), refusedAs('rule'));
  });

  test('replace their SSH keys as a whole; the audit log counts them', async () => {
    const keys = ['ssh-ed25519 AAAA ann@laptop', 'ecdsa-sha2-nistp256 BBBB'];
    assert.deepEqual((await accounts.replaceSshKeys(ann, keys)).sshKeys, keys);
    await assert.rejects(accounts.replaceSshKeys(ann, ['not a key']), refusedAs('rule'));
    assert.deepEqual((await accounts.getOwn(ann)).sshKeys, keys);
    const [latest] = await accounts.audit(ann, { limit: 1 });
    assert.deepEqual(latest?.changes, [{ field: 'sshKeys', from: 0, to: 2 }]);
    assert.deepEqual((await accounts.replaceSshKeys(ann, [])).sshKeys, []);
  });

  test('see their own audit log and no other', async () => {
    const bob = await context.account('bob');
    await accounts.replaceSshKeys(bob, []);
    assert.ok(
      (await accounts.audit(bob, { limit: 10 })).every(({ accountId }) => accountId === bob.accountId),
    );
    assert.ok(
      (await accounts.audit(ann, { limit: 10 })).every(({ accountId }) => accountId === ann.accountId),
    );
  });
});
