import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import type { Caller } from '../../domain/caller.ts';
import type { EndpointInput } from '../../domain/endpoints/endpoint-defaults.ts';
import type { Endpoint, Template } from '../../domain/records.ts';
import type { TemplateFields } from '../../domain/templates/template-defaults.ts';
import type { EndpointStore } from '../../store/store.ts';
import type { Registries } from '../registries/registries.ts';
import type { Templates } from '../templates/templates.ts';
import type { EndpointCache } from './endpoint-cache.ts';
import { Endpoints } from './endpoints.ts';
import type { EndpointsDeps } from './endpoints.ts';
import { createEndpointsFixture, order, refusedAs } from './endpoints-service.fixture.ts';

describe('endpoints created from a template', () => {
  let context: ServiceContext;
  let endpoints: Endpoints;
  let deps: EndpointsDeps;
  let templates: Templates;
  let registries: Registries;
  let directory: EndpointCache;
  let ann: Caller;
  let bob: Caller;

  before(async () => {
    ({ context, endpoints, deps, templates, registries, directory, ann, bob } =
      await createEndpointsFixture());
  });
  after(() => context.close());

  const linkedTo = (id: string): Omit<EndpointInput, 'settings'> => ({ template: { as: 'link', id } });
  const read = (id: string): Promise<Endpoint> => endpoints.get(ann, id);

  test('by link get its changes, except in fields that differ', async () => {
    const template = await templates.create(ann, {
      name: 'followed',
      image: 'a',
      env: { A: '1', B: '1' },
      category: 'CPU',
      allowedCudaVersions: ['12.8'],
    });
    const made = await endpoints.create(ann, order({}, linkedTo(template.id)));
    assert.deepEqual(
      [made.name, made.image, made.compute, made.templateId, made.templateLinked],
      ['followed', 'a', 'CPU', template.id, true],
    );
    const own = await endpoints.create(
      ann,
      order({ image: 'mine', env: { A: 'mine', B: '1' } }, linkedTo(template.id)),
    );
    assert.equal((await directory.find(made.id))?.image, 'a');

    await templates.update(ann, template.id, { image: 'b', env: { A: '2', B: '2', C: '2' } });
    assert.deepEqual(
      [(await read(made.id)).image, (await read(made.id)).env, (await read(made.id)).version],
      ['b', { A: '2', B: '2', C: '2' }, 1],
    );
    assert.deepEqual(
      [(await read(own.id)).image, (await read(own.id)).env, (await read(own.id)).version],
      ['mine', { A: 'mine', B: '2', C: '2' }, 1],
    );
    assert.equal((await directory.find(made.id))?.image, 'b', 'the directory has heard of it');

    await templates.update(ann, template.id, { readme: 'words' });
    assert.equal((await read(made.id)).version, 1, 'nothing that a container is made of has changed');
    await assert.rejects(templates.remove(ann, template.id), refusedAs('in-use', /uses this template/));
    await endpoints.remove(ann, made.id);
    await endpoints.remove(ann, own.id);
    await templates.remove(ann, template.id);
  });

  test('by copy keep the copied fields, and the template can be deleted', async () => {
    const template = await templates.create(ann, {
      name: 'copied',
      image: 'a',
      env: { A: '1' },
      serverless: true,
      allowedCudaVersions: ['12.8'],
    });
    const made = await endpoints.create(ann, order({}, { template: { as: 'copy', id: template.id } }));
    assert.deepEqual(
      [made.image, made.env, made.allowedCudaVersions, made.templateId, made.templateLinked],
      ['a', { A: '1' }, ['12.8'], null, false],
    );
    const floor = await endpoints.create(
      ann,
      order({ minCudaVersion: '12.1' }, { template: { as: 'copy', id: template.id } }),
    );
    assert.deepEqual([floor.allowedCudaVersions, floor.minCudaVersion], [[], '12.1']);
    await templates.update(ann, template.id, { image: 'b' });
    assert.equal((await read(made.id)).image, 'a');
    await templates.remove(ann, template.id);
    assert.equal(
      (await endpoints.templateOf(ann, made)).image,
      'a',
      'what it holds can still be told as a template',
    );
  });

  test('by copy drop a registry that is deleted at the same time', async () => {
    const registry = await registries.create(ann, { name: 'late', username: 'u', password: 'p' });
    const template = await templates.create(ann, {
      name: 'with registry',
      image: 'a',
      serverless: true,
      registryId: registry.id,
    });
    const copy = order({}, { template: { as: 'copy', id: template.id } });
    assert.equal((await endpoints.create(ann, copy)).registryId, registry.id);
    const { insert, ...others } = context.store.endpoints;
    const store: EndpointStore = {
      ...others,
      insert: (...said) => registries.remove(ann, registry.id).then(() => insert(...said)),
    };
    const late = new Endpoints({ ...context, store: { ...context.store, endpoints: store } }, deps);
    assert.equal((await late.create(ann, copy)).registryId, null);
  });

  test('of another account copy a public one, and are never linked', async () => {
    const registry = await registries.create(bob, { name: 'private', username: 'u', password: 'p' });
    const open = await templates.create(bob, {
      name: 'open',
      image: 'a',
      public: true,
      category: 'CPU',
      registryId: registry.id,
    });
    const made = await endpoints.create(ann, order({}, linkedTo(open.id)));
    assert.deepEqual(
      [made.image, made.templateId, made.templateLinked, made.registryId],
      ['a', open.id, false, null],
    );
    await templates.update(bob, open.id, { image: 'evil' });
    assert.equal((await read(made.id)).image, 'a');
    await templates.remove(bob, open.id);
  });

  test('refuse one that does not exist or is of the wrong kind, with the error of the interface', async () => {
    const hidden = await templates.create(bob, { name: 'hidden', image: 'a', serverless: true });
    const pod = await templates.create(ann, { name: 'for pods', image: 'a' });
    await assert.rejects(
      endpoints.create(ann, order({}, linkedTo(hidden.id))),
      refusedAs('rule', /does not exist/),
    );
    await assert.rejects(
      endpoints.create(ann, order({}, { template: { as: 'copy', id: hidden.id } })),
      refusedAs('not-found', /template/),
    );
    await assert.rejects(
      endpoints.create(ann, order({}, { template: { as: 'copy', id: pod.id } })),
      refusedAs('schema', /is for pods/),
    );
    assert.equal((await endpoints.create(ann, order({ compute: 'CPU' }, linkedTo(pod.id)))).image, 'a');
  });

  test('may change to another; naming the same one changes nothing', async () => {
    const [first, second] = [
      await templates.create(ann, { name: 'first', image: 'a', category: 'CPU' }),
      await templates.create(ann, { name: 'second', image: 'b', env: { B: '1' } }),
    ];
    const made = await endpoints.create(ann, order({ env: { OWN: '1' } }, linkedTo(first.id)));
    const same = await endpoints.update(ann, made.id, order({}, linkedTo(first.id)));
    assert.deepEqual([same.env, same.version], [{ OWN: '1' }, 0]);
    const moved = await endpoints.update(ann, made.id, order({}, linkedTo(second.id)));
    assert.deepEqual(
      [moved.image, moved.env, moved.templateId, moved.version, moved.name],
      ['b', { B: '1' }, second.id, 1, 'first'],
    );
    await templates.remove(ann, first.id);
  });

  test('of their own delete it with the endpoint', async () => {
    const own = (fields: {
      name?: string;
      image?: string;
      env?: Record<string, string>;
    }): Omit<EndpointInput, 'settings'> => ({ template: { as: 'own', fields } });
    const made = await endpoints.create(
      ann,
      order({ name: 'bound', compute: 'CPU' }, own({ name: 'inline', image: 'a' })),
    );
    assert.deepEqual([made.image, made.templateLinked, made.templateBound], ['a', true, true]);
    const template = await templates.get(ann, made.templateId ?? '');
    assert.deepEqual([template.name, template.serverless], ['inline', true]);

    const twin = await endpoints.create(
      ann,
      order({ name: 'twin', compute: 'CPU' }, own({ name: 'inline', image: 'a' })),
    );
    assert.match(
      (await templates.get(ann, twin.templateId ?? '')).name,
      /^inline /,
      'a taken name is made free',
    );

    const changed = await endpoints.update(ann, made.id, order({ workersMax: 7 }, own({ image: 'b' })));
    assert.deepEqual(
      [changed.image, changed.workersMax, changed.templateId, changed.version],
      ['b', 7, made.templateId, 1],
    );
    await endpoints.remove(ann, made.id);
    await assert.rejects(templates.get(ann, template.id), refusedAs('not-found', /template/));
    await assert.rejects(
      endpoints.create(ann, order({}, own({ name: 'no image' }))),
      refusedAs('rule', /image must/),
    );
  });

  test('return a template built from their fields if it was deleted meanwhile', async () => {
    const made = await endpoints.create(
      ann,
      order({ name: 'going', compute: 'CPU' }, { template: { as: 'own', fields: { image: 'a' } } }),
    );
    assert.equal((await endpoints.templateOf(ann, made)).name, `template of ${made.id}`);
    await endpoints.remove(ann, made.id);
    const { id, image } = await endpoints.templateOf(ann, made);
    assert.deepEqual([id, image], [made.templateId, 'a']);
  });

  test('of their own change together with it, in one release or not at all', async () => {
    const own = (fields: Partial<TemplateFields>): Omit<EndpointInput, 'settings'> => ({
      template: { as: 'own', fields },
    });
    const made = await endpoints.create(
      ann,
      order({ name: 'whole', compute: 'CPU' }, own({ name: 'whole', image: 'a', env: { A: '1' } })),
    );
    const follower = await endpoints.create(
      ann,
      order({ name: 'follower', compute: 'CPU' }, linkedTo(made.templateId ?? '')),
    );
    const ownTemplate = (): Promise<Template> => templates.get(ann, made.templateId ?? '');
    const before = await ownTemplate();
    context.clock.advance(5);

    const refusals: [EndpointInput, RegExp][] = [
      [order({ dataCenterIds: ['MOON-1'] }, own({ image: 'b' })), /MOON-1/],
      [order({ name: 'new' }, own({ image: 'b', volumeSize: 5 })), /volume size must be 0/],
      [
        order({ name: 'new' }, own({ image: 'b', serverless: false, volumeSize: 5 })),
        /volume size must be 0/,
      ],
      [order({ name: 'new' }, own({ image: 'b', registryId: 'gone' })), /registry "gone" does not exist/],
    ];
    for (const [wrong, words] of refusals)
      await assert.rejects(endpoints.update(ann, made.id, wrong), refusedAs('rule', words));
    await templates.create(ann, { name: 'taken', image: 'a' });
    await assert.rejects(
      endpoints.update(ann, made.id, order({ name: 'new' }, own({ name: 'taken' }))),
      refusedAs('taken', /"taken" exists already/),
    );
    assert.deepEqual([await read(made.id), await ownTemplate()], [made, before]);
    assert.deepEqual(
      (await context.store.workers.listReleases(made.id, { limit: 9 })).map(({ version }) => version),
      [0],
    );

    const changed = await endpoints.update(
      ann,
      made.id,
      order(
        { modelReferences: ['org/model'] },
        own({ image: 'c', env: { A: '2' }, serverless: false, public: true }),
      ),
    );
    assert.deepEqual(
      [changed.image, changed.env, changed.modelReferences, changed.version],
      ['c', { A: '2' }, ['org/model'], 1],
    );
    assert.deepEqual(await ownTemplate(), {
      ...before,
      image: 'c',
      env: { A: '2' },
      updatedAt: before.updatedAt + 5,
    });
    assert.deepEqual(
      (await context.store.workers.listReleases(made.id, { limit: 9 })).map(({ version }) => version),
      [1, 0],
    );
    assert.deepEqual(
      [(await read(follower.id)).image, (await read(follower.id)).version],
      ['c', 1],
      'others that follow it do so still',
    );
    const audit = await context.store.audit.list(ann.accountId, { limit: 3 });
    assert.deepEqual(
      audit.map(({ resource, resourceId }) => [resource, resourceId]).sort(),
      [
        ['endpoint', follower.id],
        ['endpoint', made.id],
        ['template', before.id],
      ].sort(),
    );
  });
});
