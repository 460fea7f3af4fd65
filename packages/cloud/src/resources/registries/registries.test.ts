import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { BerthError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { Registries } from './registries.ts';

const refusedAs = (code: string) => (error: unknown) =>
  error instanceof BerthError && error.code === code && !/hidden/.test(error.message);

describe('registries', () => {
  let context: ServiceContext;
  let registries: Registries;
  let ann: Caller;

  before(async () => {
    context = await createServiceContext();
    registries = new Registries(context);
    ann = await context.account('ann');
  });
  after(() => context.close());

  test('store and change credentials, which never appear in the audit log', async () => {
    const made = await registries.create(ann, {
      name: 'hub',
      username: 'hidden user',
      password: 'hidden password',
    });
    assert.deepEqual(await registries.get(ann, made.id), made);
    const changed = await registries.replaceCredentials(ann, made.id, {
      username: 'hidden other',
      password: 'hidden too',
    });
    assert.deepEqual(changed, { ...made, username: 'hidden other', password: 'hidden too' });
    const entries = await context.store.audit.list(ann.accountId, { limit: 10 });
    assert.deepEqual(entries[0]?.changes, [{ field: 'username' }, { field: 'password' }]);
    assert.doesNotMatch(JSON.stringify(entries), /hidden/);
  });

  test('have a unique name in an account', async () => {
    await assert.rejects(
      registries.create(ann, { name: 'hub', username: 'hidden', password: 'hidden' }),
      refusedAs('taken'),
    );
    await registries.create(await context.account('bob'), { name: 'hub', username: 'u', password: 'p' });
  });

  test('that are unknown or of another account are not found', async () => {
    const carol = await context.account('carol');
    const [made] = await registries.list(ann);
    assert.ok(made !== undefined);
    for (const id of [made.id, 'unknown']) {
      await assert.rejects(registries.get(carol, id), refusedAs('not-found'));
      await assert.rejects(
        registries.replaceCredentials(carol, id, { username: 'u', password: 'p' }),
        refusedAs('not-found'),
      );
      await assert.rejects(registries.remove(carol, id), refusedAs('not-found'));
    }
    await registries.remove(ann, made.id);
    assert.deepEqual(await registries.list(ann), []);
  });
});
