import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../../testing/src/test-database.ts';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { Sealer } from '../../support/crypto.ts';
import { BerthError } from '../../support/errors.ts';
import { UniqueViolation } from '../database.ts';
import { createStore } from '../open-store.ts';
import { ACCOUNT_DEFAULTS } from '../../domain/records.ts';
import type { Endpoint, Template } from '../../domain/records.ts';
import { rows, sql } from '../sql.ts';
import type {
  AuditedEndpointChange,
  EndpointReferences,
  EndpointReferenceIds,
  Store,
  TemplateReferences,
} from '../store.ts';
import { audit, endpoint, ONE, template, TWO, volume } from './endpoint-records.fixture.ts';

const inUse = (words: RegExp) => (error: unknown) =>
  error instanceof BerthError && error.code === 'in-use' && words.test(error.message);

for (const kind of DATABASES) {
  describe(`endpoints on ${kind}`, () => {
    let place: MigratedDatabase;
    let store: Store;

    const insert = (record: Endpoint, ids: EndpointReferenceIds = {}, made?: Template): Promise<Endpoint> =>
      store.endpoints.insert(record.accountId, ids, () => ({
        record,
        audit: audit(record.accountId, record.id),
        ...(made !== undefined && { template: made }),
      }));
    const insertTemplate = (record: Template): Promise<Template> =>
      store.templates.insert(record.accountId, {}, () => ({
        record,
        audit: audit(record.accountId, record.id),
      }));
    const insertRegistry = (id: string): Promise<void> =>
      store.registries.insert(
        { id, accountId: ONE, name: id, username: 'u', password: 'p', createdAt: 1 },
        audit(ONE, id),
      );
    const change = (
      id: string,
      next: (current: Endpoint, references: EndpointReferences) => Endpoint,
      ids: EndpointReferenceIds = {},
    ): Promise<Endpoint | undefined> =>
      store.endpoints.change(
        ONE,
        id,
        ids,
        (current, references): AuditedEndpointChange => ({
          record: next(current, references),
          audit: audit(ONE, id, 'update'),
        }),
      );
    const linked = (id: string, templateId: string): Endpoint => ({
      ...endpoint(id),
      templateId,
      templateLinked: true,
    });

    before(async () => {
      place = await createMigratedDatabase(kind);
      store = createStore(place.database, new Sealer(Buffer.alloc(32, 7)));
      for (const id of [ONE, TWO]) {
        const key = {
          id: `key ${id}`,
          accountId: id,
          name: id,
          hash: id,
          access: 'all' as const,
          scopes: { rest: 'write' as const, graphql: 'write' as const, serverless: 'write' as const },
          endpoints: null,
          enabled: true,
          root: false,
          createdAt: 1,
          lastUsedAt: null,
          expiresAt: null,
        };
        await store.accounts.insert({ id, name: id, ...ACCOUNT_DEFAULTS, createdAt: 1 }, key, audit(id, id));
      }
    });
    after(() => place.drop());

    test('are read with every field, and their environment is stored encrypted', async () => {
      await insert(endpoint('e1'));
      assert.deepEqual(await store.endpoints.find(ONE, 'e1'), endpoint('e1'));
      assert.deepEqual(await store.endpoints.findInAnyAccount('e1'), endpoint('e1'));
      assert.ok(
        !JSON.stringify(await place.database.read(() => rows(sql`select * from endpoints`))).includes(
          'hidden value',
        ),
      );
      const changed: Endpoint = {
        ...endpoint('e1'),
        name: 'other',
        env: {},
        minCudaVersion: null,
        retention: null,
        scalerValue: 4,
        cpuFlavors: [],
        version: 5,
      };
      assert.deepEqual(await change('e1', () => changed), changed);
      assert.deepEqual(await store.endpoints.find(ONE, 'e1'), changed);
    });

    test('of another account are not seen, changed or removed', async () => {
      await insert(endpoint('e2', TWO));
      assert.equal(await store.endpoints.find(ONE, 'e2'), undefined);
      assert.equal(await change('e2', (current) => current), undefined);
      assert.equal(await store.endpoints.remove(ONE, 'e2', audit(ONE, 'e2', 'delete')), false);
      assert.equal((await store.endpoints.findInAnyAccount('e2'))?.accountId, TWO);
      assert.ok((await store.endpoints.list(ONE)).every(({ accountId }) => accountId === ONE));
    });

    test('are found together, whoever owns them', async () => {
      const found = await Promise.all(
        ['e1', 'e2', 'none', 'e1', 'e2'].map((id) => store.endpoints.findInAnyAccount(id)),
      );
      assert.deepEqual(
        found.map((one) => one && [one.id, one.accountId]),
        [['e1', ONE], ['e2', TWO], undefined, ['e1', ONE], ['e2', TWO]],
      );
    });

    test('are listed newest first, page by page', async () => {
      for (const [index, at] of [5, 7, 7, 9].entries()) await insert(endpoint(`p${index}`, TWO, at));
      const all = (await store.endpoints.list(TWO)).map(({ id }) => id);
      assert.deepEqual(all, ['p3', 'p2', 'p1', 'p0', 'e2']);
      const first = await store.endpoints.list(TWO, { limit: 2 });
      const second = await store.endpoints.list(TWO, {
        limit: 9,
        after: { createdAt: first[1]?.createdAt ?? 0, id: first[1]?.id ?? '' },
      });
      assert.deepEqual(
        [...first, ...second].map(({ id }) => id),
        all,
      );
    });

    test('refer only to resources of their account', async () => {
      await insertTemplate(template('t1'));
      await insertTemplate(template('foreign', TWO));
      await store.volumes.insert(volume('v1'), audit(ONE, 'v1'));
      await store.volumes.insert(volume('v9', TWO), audit(TWO, 'v9'));
      await insertRegistry('r1');
      const seen: EndpointReferences[] = [];
      const look = (ids: EndpointReferenceIds): Promise<unknown> =>
        change('e1', (current, references) => (seen.push(references), current), ids);
      await look({ templateId: 't1', registryIds: ['r1'], volumeIds: ['v1', 'v9', 'gone'] });
      await look({ templateId: 'foreign', registryIds: ['gone'], volumeIds: [] });
      assert.deepEqual(seen, [
        { registryIds: ['r1'], template: template('t1'), volumes: [volume('v1')] },
        { registryIds: [], template: undefined, volumes: [] },
      ]);
    });

    test('protect their linked template and their volumes from deletion; a copy does not', async () => {
      await insert({ ...linked('e3', 't1'), networkVolumeIds: ['v1'] });
      await assert.rejects(
        store.templates.remove(ONE, 't1', audit(ONE, 't1', 'delete')),
        inUse(/"endpoint e3" \(e3\) uses this template/),
      );
      await assert.rejects(
        store.volumes.remove(ONE, 'v1', audit(ONE, 'v1', 'delete')),
        inUse(/"endpoint e3" \(e3\) uses this network volume/),
      );
      assert.ok(await store.templates.find(ONE, 't1'));
      assert.ok(await store.volumes.find(ONE, 'v1'));
      await change('e3', (current) => ({ ...current, templateLinked: false, networkVolumeIds: [] }));
      assert.equal(await store.templates.remove(ONE, 't1', audit(ONE, 't1', 'delete')), true);
      assert.equal(await store.volumes.remove(ONE, 'v1', audit(ONE, 'v1', 'delete')), true);
    });

    test('that race with the removal of their template or volume leave no dangling reference', async () => {
      for (let round = 0; round < 10; round += 1) {
        const [templateId, volumeId, id] = [`race-t${round}`, `racev${round}`, `race-e${round}`];
        await insertTemplate(template(templateId));
        await store.volumes.insert(volume(volumeId), audit(ONE, volumeId));
        const make = store.endpoints.insert(
          ONE,
          { templateId, volumeIds: [volumeId] },
          ({ template: found, volumes }) => {
            if (found === undefined || volumes.length === 0) throw new Error('gone');
            return {
              record: { ...linked(id, templateId), networkVolumeIds: [volumeId] },
              audit: audit(ONE, id),
            };
          },
        );
        await Promise.allSettled([
          make,
          store.templates.remove(ONE, templateId, audit(ONE, templateId, 'delete')),
          store.volumes.remove(ONE, volumeId, audit(ONE, volumeId, 'delete')),
        ]);
        const made = (await store.endpoints.find(ONE, id)) !== undefined;
        if (made)
          assert.ok(
            (await store.templates.find(ONE, templateId)) !== undefined &&
              (await store.volumes.find(ONE, volumeId)) !== undefined,
          );
      }
    });

    test('follow a change of their template, in the same transaction', async () => {
      await insertTemplate(template('t2'));
      await insert(linked('e4', 't2'));
      await insert(linked('e5', 't2'));
      await insert({ ...endpoint('e6'), templateId: 't2' });
      const update = (follow: (endpoint: Endpoint) => Endpoint | undefined): Promise<Template | undefined> =>
        store.templates.change(ONE, 't2', {}, (current) => ({
          record: { ...current, image: `${current.image}+` },
          audit: audit(ONE, 't2', 'update'),
          updateLinked: (found) => {
            const record = follow(found);
            return record && { record, audit: audit(ONE, found.id, 'update') };
          },
        }));
      await update((found) => (found.id === 'e4' ? { ...found, image: 'followed' } : undefined));
      assert.equal((await store.templates.find(ONE, 't2'))?.image, 'image+');
      assert.deepEqual(
        (await Promise.all(['e4', 'e5', 'e6'].map((id) => store.endpoints.find(ONE, id)))).map(
          (found) => found?.image,
        ),
        ['followed', 'image:tag', 'image:tag'],
      );
      const refused = update(() => {
        throw new Error('refused');
      });
      await assert.rejects(refused, /refused/);
      assert.equal((await store.templates.find(ONE, 't2'))?.image, 'image+');
    });

    test('take every change of their template, however the two meet', async () => {
      await insertTemplate({ ...template('t3'), containerDisk: 0 });
      const grow = (): Promise<unknown> =>
        store.templates.change(ONE, 't3', {}, (current) => ({
          record: { ...current, containerDisk: current.containerDisk + 1 },
          audit: audit(ONE, 't3', 'update'),
          updateLinked: (found) => ({
            record: { ...found, containerDisk: current.containerDisk + 1 },
            audit: audit(ONE, found.id, 'update'),
          }),
        }));
      const join = (id: string): Promise<unknown> =>
        store.endpoints.insert(ONE, { templateId: 't3' }, ({ template: found }) => ({
          record: { ...linked(id, 't3'), containerDisk: found?.containerDisk ?? -1 },
          audit: audit(ONE, id),
        }));
      await Promise.all(Array.from({ length: 10 }, (_, index) => [grow(), join(`f${index}`)]).flat());
      const found = await Promise.all(
        Array.from({ length: 10 }, (_, index) => store.endpoints.find(ONE, `f${index}`)),
      );
      assert.deepEqual(new Set(found.map((one) => one?.containerDisk)), new Set([10]));
    });

    test('lose a registry that is deleted', async () => {
      await insert({ ...endpoint('e7'), registryId: 'r1' }, { registryIds: ['r1'] });
      assert.equal(await store.registries.remove(ONE, 'r1', audit(ONE, 'r1', 'delete')), true);
      assert.equal((await store.endpoints.find(ONE, 'e7'))?.registryId, null);
    });

    test('change together with their template, however two such changes meet', async () => {
      await insertTemplate({ ...template('t4'), containerDisk: 0 });
      await insert({ ...linked('g0', 't4'), templateBound: true, containerDisk: 0 });
      await insert({ ...linked('g1', 't4'), containerDisk: 0 });
      const grow = (): Promise<unknown> =>
        store.endpoints.change(
          ONE,
          'g0',
          { templateId: 't4', changesTemplate: true },
          (current, { template: found }) => {
            const containerDisk = (found?.containerDisk ?? -1) + 1;
            return {
              record: { ...current, containerDisk, version: current.version + 1 },
              audit: audit(ONE, 'g0', 'update'),
              changedTemplate: {
                record: { ...template('t4'), containerDisk },
                audit: audit(ONE, 't4', 'update'),
                updateLinked: (other) =>
                  other.id === 'g0'
                    ? undefined
                    : { record: { ...other, containerDisk }, audit: audit(ONE, other.id, 'update') },
              },
            };
          },
        );
      await Promise.all(Array.from({ length: 8 }, grow));
      const disks = [
        await store.templates.find(ONE, 't4'),
        await store.endpoints.find(ONE, 'g0'),
        await store.endpoints.find(ONE, 'g1'),
      ].map((found) => found?.containerDisk);
      assert.deepEqual(disks, [8, 8, 8]);
      assert.equal((await store.endpoints.find(ONE, 'g0'))?.version, endpoint('g0').version + 8);
    });

    test('and templates that meet the removal of a registry name none that is gone', async () => {
      for (let round = 0; round < 10; round += 1) {
        const [registryId, templateId, id] = [`race-r${round}`, `race-rt${round}`, `race-re${round}`];
        await insertRegistry(registryId);
        await insertTemplate(template(templateId));
        await insert(linked(id, templateId));
        const named = <T extends Endpoint | Template>(record: T, { registryIds }: TemplateReferences): T => {
          if (!registryIds.includes(registryId)) throw new Error('gone');
          return { ...record, registryId };
        };
        const update = store.templates.change(
          ONE,
          templateId,
          { registryIds: [registryId] },
          (current, references) => ({
            record: named(current, references),
            audit: audit(ONE, templateId, 'update'),
            updateLinked: (found) => ({ record: { ...found, registryId }, audit: audit(ONE, id, 'update') }),
          }),
        );
        const both = change(id, (current, references) => named(current, references), {
          templateId,
          registryIds: [registryId],
        });
        await Promise.allSettled([
          update,
          both,
          store.registries.remove(ONE, registryId, audit(ONE, registryId, 'delete')),
        ]);
        assert.equal(await store.registries.find(ONE, registryId), undefined);
        assert.deepEqual(
          [
            (await store.templates.find(ONE, templateId))?.registryId,
            (await store.endpoints.find(ONE, id))?.registryId,
          ],
          [null, null],
        );
      }
    });

    test('take a template of their own along, when they come and when they go', async () => {
      const own = (id: string, templateId: string): Endpoint => ({
        ...linked(id, templateId),
        templateBound: true,
      });
      await insert(own('e8', 'own1'), {}, template('own1'));
      assert.deepEqual(await store.templates.find(ONE, 'own1'), template('own1'));
      await assert.rejects(
        insert(own('e9', 'own2'), {}, { ...template('own2'), name: 'own1' }),
        UniqueViolation,
      );
      assert.equal(await store.endpoints.find(ONE, 'e9'), undefined);

      await store.endpoints.change(ONE, 'e8', {}, () => ({
        record: own('e8', 'own3'),
        template: template('own3'),
        audit: audit(ONE, 'e8', 'update'),
      }));
      assert.equal(await store.templates.find(ONE, 'own1'), undefined);
      assert.equal(await store.endpoints.remove(ONE, 'e8', audit(ONE, 'e8', 'delete')), true);
      assert.equal(await store.templates.find(ONE, 'own3'), undefined);
      assert.equal(await store.endpoints.remove(ONE, 'e8', audit(ONE, 'e8', 'delete')), false);
    });

    test('leave a template of their own to the others that use it', async () => {
      const own = (id: string, templateId: string): Endpoint => ({
        ...linked(id, templateId),
        templateBound: true,
      });
      await insert(own('o1', 'shared1'), {}, template('shared1'));
      await insert(linked('o2', 'shared1'), { templateId: 'shared1' });
      assert.equal(await store.endpoints.remove(ONE, 'o1', audit(ONE, 'o1', 'delete')), true);
      assert.deepEqual(await store.templates.find(ONE, 'shared1'), template('shared1'));
      await assert.rejects(
        store.templates.remove(ONE, 'shared1', audit(ONE, 'shared1', 'delete')),
        inUse(/"endpoint o2" \(o2\) uses this template/),
      );
      assert.equal(await store.endpoints.remove(ONE, 'o2', audit(ONE, 'o2', 'delete')), true);
      assert.equal(await store.templates.remove(ONE, 'shared1', audit(ONE, 'shared1', 'delete')), true);
    });

    test('that use a template while its endpoint is deleted find it, or learn that it is gone', async () => {
      for (let round = 0; round < 10; round += 1) {
        const [templateId, first, second] = [`meet-t${round}`, `meet-a${round}`, `meet-b${round}`];
        await insert({ ...linked(first, templateId), templateBound: true }, {}, template(templateId));
        const comes = store.endpoints.insert(ONE, { templateId }, ({ template: found }) => {
          if (found === undefined) throw new Error('gone');
          return { record: linked(second, templateId), audit: audit(ONE, second, 'create') };
        });
        const [came] = await Promise.allSettled([
          comes,
          store.endpoints.remove(ONE, first, audit(ONE, first, 'delete')),
        ]);
        assert.equal(
          (await store.templates.find(ONE, templateId)) !== undefined,
          came.status === 'fulfilled',
        );
      }
    });
  });
}
