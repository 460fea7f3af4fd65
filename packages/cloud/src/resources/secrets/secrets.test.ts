import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { BerthError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { Secrets } from './secrets.ts';

const refusedAs = (code: string) => (error: unknown) => error instanceof BerthError && error.code === code;

describe('secrets', () => {
  let context: ServiceContext;
  let secrets: Secrets;
  let ann: Caller;

  before(async () => {
    context = await createServiceContext();
    secrets = new Secrets(context);
    ann = await context.account('ann');
  });
  after(() => context.close());

  test('are returned without their value', async () => {
    const made = await secrets.create(ann, {
      name: 'token',
      value: 'the hidden value',
      description: 'for the hub',
    });
    assert.deepEqual(await secrets.get(ann, made.id), made);
    assert.deepEqual(await secrets.list(ann), [made]);
    assert.doesNotMatch(
      JSON.stringify([made, await context.store.audit.list(ann.accountId, { limit: 10 })]),
      /the hidden value/,
    );
  });

  test('are passed to containers of their own account only', async () => {
    assert.deepEqual(
      await secrets.resolve(ann.accountId, { KEY: 'Bearer {{ RUNPOD_SECRET_token }}', PLAIN: 'x' }),
      { KEY: 'Bearer the hidden value', PLAIN: 'x' },
    );
    const bob = await context.account('bob');
    await assert.rejects(
      secrets.resolve(bob.accountId, { KEY: '{{ RUNPOD_SECRET_token }}' }),
      /do not exist: token/,
    );
  });

  test('have a unique name; the error does not contain the value', async () => {
    await assert.rejects(
      secrets.create(ann, { name: 'token', value: 'another value', description: null }),
      (error) => refusedAs('conflict')(error) && !String(error).includes('another value'),
    );
    await secrets.create(ann, { name: 'TOKEN', value: 'x', description: null });
    await secrets.create(await context.account('carol'), { name: 'token', value: 'x', description: null });
  });

  test('can be changed, and record when the value changed', async () => {
    const made = await secrets.create(ann, { name: 'changing', value: 'one', description: 'before' });
    context.clock.advance(1000);
    const described = await secrets.update(ann, made.id, { description: null });
    assert.deepEqual(described, { ...made, description: null, updatedAt: made.updatedAt + 1000 });
    context.clock.advance(1000);
    const replaced = await secrets.update(ann, made.id, { value: 'two' });
    assert.equal(replaced.valueUpdatedAt, made.valueUpdatedAt + 2000);
    assert.deepEqual(await secrets.resolve(ann.accountId, { A: '{{RUNPOD_SECRET_changing}}' }), { A: 'two' });
    const [latest, earlier] = await context.store.audit.list(ann.accountId, { limit: 2 });
    assert.deepEqual(latest?.changes, [{ field: 'value' }]);
    assert.deepEqual(earlier?.changes, [{ field: 'description', from: 'before', to: null }]);
  });

  test('that are refused or unknown change nothing', async () => {
    const before = await context.store.audit.list(ann.accountId, { limit: 100 });
    await assert.rejects(
      secrets.create(ann, { name: 'RUNPOD_x', value: 'x', description: null }),
      refusedAs('rule'),
    );
    await assert.rejects(
      secrets.create(ann, { name: 'empty', value: '', description: null }),
      refusedAs('rule'),
    );
    await assert.rejects(secrets.update(ann, 'unknown', { value: 'x' }), refusedAs('not-found'));
    await assert.rejects(secrets.remove(ann, 'unknown'), refusedAs('not-found'));
    await assert.rejects(secrets.get(ann, 'unknown'), refusedAs('not-found'));
    assert.equal((await context.store.audit.list(ann.accountId, { limit: 100 })).length, before.length);
  });

  test('that are deleted make references fail', async () => {
    const made = await secrets.create(ann, { name: 'short', value: 'x', description: null });
    await secrets.remove(ann, made.id);
    await assert.rejects(
      secrets.resolve(ann.accountId, { A: '{{ RUNPOD_SECRET_short }}' }),
      /do not exist: short/,
    );
  });
});
