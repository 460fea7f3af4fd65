import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import type { TemplateStore } from '../../store/store.ts';
import { BerthError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { officialTemplates } from './official-templates.ts';
import { Registries } from '../registries/registries.ts';
import { Templates } from './templates.ts';

const refusedAs = (code: string, words: RegExp) => (error: unknown) =>
  error instanceof BerthError && error.code === code && words.test(error.message);

describe('templates', () => {
  let context: ServiceContext;
  let templates: Templates;
  let ann: Caller;
  let bob: Caller;

  before(async () => {
    context = await createServiceContext();
    templates = new Templates(context);
    ann = await context.account('ann');
    bob = await context.account('bob');
  });
  after(() => context.close());

  test('get defaults for missing fields, and are returned as created', async () => {
    const made = await templates.create(ann, { name: 'plain', image: 'python:3.12' });
    assert.equal(made.containerDisk, 50);
    assert.equal(made.volumeSize, 0);
    assert.equal(made.startSsh, true);
    assert.deepEqual(await templates.get(ann, made.id), made);
    assert.deepEqual(await templates.list(ann), [made]);
  });

  test('change only in the given fields', async () => {
    const made = await templates.create(ann, {
      name: 'changing',
      image: 'a',
      args: 'one',
      env: { A: '1' },
      ports: ['80/http'],
    });
    context.clock.advance(5);
    const changed = await templates.update(ann, made.id, { image: 'b' });
    assert.deepEqual(changed, { ...made, image: 'b', updatedAt: made.updatedAt + 5 });
    const commanded = await templates.update(ann, made.id, {}, (args) => `${args} two`);
    assert.equal(commanded.args, 'one two');
    assert.deepEqual(await templates.get(ann, made.id), commanded);
  });

  test('have a unique name, at creation and when renamed', async () => {
    const made = await templates.create(ann, { name: 'unique', image: 'a' });
    await assert.rejects(
      templates.create(ann, { name: 'unique', image: 'b' }),
      refusedAs('taken', /"unique" exists already/),
    );
    const other = await templates.create(ann, { name: 'other', image: 'b' });
    await assert.rejects(
      templates.update(ann, other.id, { name: 'unique' }),
      refusedAs('taken', /"unique" exists already/),
    );
    assert.equal((await templates.update(ann, made.id, { name: 'unique' })).name, 'unique');
    await templates.create(bob, { name: 'unique', image: 'c' });
  });

  test('of another account are not found, unless public, and then read-only', async () => {
    const hidden = await templates.create(ann, { name: 'hidden', image: 'a' });
    await assert.rejects(templates.get(bob, hidden.id), refusedAs('not-found', /not found/));
    const open = await templates.create(ann, { name: 'open', image: 'a', public: true });
    assert.deepEqual(await templates.get(bob, open.id), open);
    await assert.rejects(templates.update(bob, open.id, { image: 'b' }), refusedAs('not-found', /not found/));
    await assert.rejects(templates.remove(bob, open.id), refusedAs('not-found', /not found/));
    await assert.rejects(templates.removeByName(bob, 'open'), refusedAs('not-found', /not found/));
    assert.deepEqual(
      (await templates.listPublic(10)).map(({ id }) => id),
      [open.id],
    );
  });

  test('that are official can be read by all and changed by none', async () => {
    const [official] = officialTemplates;
    assert.ok(official !== undefined);
    assert.equal(await templates.get(bob, official.id), official);
    await assert.rejects(
      templates.update(context.root, official.id, { image: 'b' }),
      refusedAs('not-found', /not found/),
    );
    await assert.rejects(templates.remove(context.root, official.id), refusedAs('not-found', /not found/));
  });

  test('refer only to registries of their own account', async () => {
    const registry = await new Registries(context).create(bob, { name: 'hub', username: 'u', password: 'p' });
    await assert.rejects(
      templates.create(ann, { name: 'private', image: 'a', registryId: registry.id }),
      refusedAs('rule', /does not exist in this account/),
    );
    const made = await templates.create(bob, { name: 'private', image: 'a', registryId: registry.id });
    await assert.rejects(
      templates.update(bob, made.id, { registryId: 'unknown' }),
      refusedAs('rule', /"unknown" does not exist/),
    );
    await new Registries(context).remove(bob, registry.id);
    assert.equal((await templates.get(bob, made.id)).registryId, null);
  });

  test('do not refer to a registry that is deleted at the same time', async () => {
    const registries = new Registries(context);
    const made = await templates.create(ann, { name: 'late', image: 'a' });
    const { insert, change, ...others } = context.store.templates;
    /** Deletes the registry after the checks that precede the transaction. */
    const late = (registryId: string): Templates => {
      const gone = (): Promise<void> => registries.remove(ann, registryId);
      const store: TemplateStore = {
        ...others,
        insert: (...said) => gone().then(() => insert(...said)),
        change: (...said) => gone().then(() => change(...said)),
      };
      return new Templates({ ...context, store: { ...context.store, templates: store } });
    };
    const [one, two] = [
      await registries.create(ann, { name: 'one', username: 'u', password: 'p' }),
      await registries.create(ann, { name: 'two', username: 'u', password: 'p' }),
    ];
    await assert.rejects(
      late(one.id).update(ann, made.id, { registryId: one.id }),
      refusedAs('rule', /does not exist in this account/),
    );
    await assert.rejects(
      late(two.id).create(ann, { name: 'later', image: 'a', registryId: two.id }),
      refusedAs('rule', /does not exist in this account/),
    );
    assert.equal((await templates.get(ann, made.id)).registryId, null);
  });

  test('that are refused are not stored', async () => {
    const before = await context.store.audit.list(ann.accountId, { limit: 1000 });
    await assert.rejects(
      templates.create(ann, { name: 'bad', image: 'a', serverless: true, volumeSize: 5 }),
      refusedAs('rule', /must be 0 for a serverless template/),
    );
    const [made] = await templates.list(ann);
    assert.ok(made !== undefined);
    await assert.rejects(templates.update(ann, made.id, { ports: ['x'] }), refusedAs('rule', /port "x"/));
    assert.deepEqual(await templates.get(ann, made.id), made);
    assert.equal((await context.store.audit.list(ann.accountId, { limit: 1000 })).length, before.length);
  });

  test('are recorded when they change, without the values of their environment', async () => {
    const made = await templates.create(bob, { name: 'recorded', image: 'a', env: { TOKEN: 'first value' } });
    await templates.update(bob, made.id, { image: 'b', env: { TOKEN: 'second value' } });
    await templates.removeByName(bob, 'recorded');
    const entries = (await context.store.audit.list(bob.accountId, { limit: 3 })).reverse();
    assert.deepEqual(
      entries.map(({ action, resource, resourceId, keyId }) => [action, resource, resourceId, keyId]),
      ['create', 'update', 'delete'].map((action) => [action, 'template', made.id, bob.keyId]),
    );
    assert.deepEqual(entries[1]?.changes, [{ field: 'image', from: 'a', to: 'b' }, { field: 'env' }]);
    assert.doesNotMatch(JSON.stringify(entries), /first value|second value/);
  });
});
