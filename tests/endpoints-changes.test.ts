import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  A40,
  REQUEST_COUNT_SCALING,
  QUEUE_DELAY_SCALING,
  endpointInterfaces,
  GPU_ENDPOINT,
  RTX_4090,
} from '../packages/testing/src/endpoint-interfaces.ts';
import type { EndpointView } from '../packages/testing/src/endpoint-interfaces.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

for (const kind of DATABASES) {
  describe(`endpoints that change, on ${kind}`, () => {
    const fixture = serverFixture(kind);
    let ann: TestAccount;
    let templateId: string;
    const {
      createBaseTemplate,
      createTemplate,
      createVolume,
      createInV1,
      createInV2,
      saveInGraphql,
      graphqlRefusal,
      getFromV1,
      getFromV2,
      getFromGraphql,
    } = endpointInterfaces(() => ({
      ann,
      templateId,
    }));
    before(async () => {
      ann = await fixture.createAccount('ann');
      templateId = await createBaseTemplate();
    });

    test('of v1 and GraphQL follow their template, and keep it; those of v2 took a copy', async () => {
      const id = await createTemplate('followed', { env: { A: '1' } });
      const [linked, copied] = [
        await createInV1({ templateId: id }),
        await createInV2({ templateId: id, name: 'copy', env: { B: '1' }, image: undefined }),
      ];
      assert.deepEqual(copied['env'], { A: '1', B: '1' });
      await ann.call('PATCH', `/v1/templates/${id}`, { imageName: 'local/other', env: { A: '2' } });
      assert.partialDeepStrictEqual(await getFromV2(linked.id), { image: 'local/other', env: { A: '2' } });
      assert.equal((await getFromV1(linked.id))['version'], 1);
      assert.partialDeepStrictEqual(await getFromV2(copied.id), {
        image: 'local/echo',
        env: { A: '1', B: '1' },
      });
      for (const path of [`/v1/templates/${id}`, `/v2/templates/${id}`]) {
        const { status, text } = await ann.call('DELETE', path);
        assert.equal(status, 400);
        assert.match(text, /uses this template/);
      }
      const { body } = await ann.graphql('mutation { deleteTemplate(templateName: "followed") }');
      assert.match(body.errors?.[0]?.message ?? '', /uses this template/);
      assert.equal((await ann.call('DELETE', `/v1/endpoints/${linked.id}`)).status, 204);
      assert.equal((await ann.call('DELETE', `/v2/templates/${id}`)).status, 204);
      assert.equal((await getFromV2(copied.id))['image'], 'local/echo');
    });

    test('of v2 need only a template, which must be for endpoints', async () => {
      const { status, body } = await ann.call<EndpointView>('POST', '/v2/serverless', { templateId });
      assert.equal(status, 201);
      assert.partialDeepStrictEqual(body, {
        name: 'base',
        type: 'QUEUE',
        scaling: QUEUE_DELAY_SCALING,
        image: 'local/echo',
        args: 'run it',
        disk: 7,
      });
      assert.equal(
        (await ann.call<EndpointView>('POST', '/v2/serverless', { templateId: 'berth-echo' })).body['gpu'],
        null,
        'one for CPUs makes an endpoint on CPUs',
      );
      const { body: pod } = await ann.call<EndpointView>('POST', '/v1/templates', {
        name: 'for pods',
        imageName: 'x',
      });
      assert.equal((await ann.call('POST', '/v2/serverless', { templateId: pod.id })).status, 422);
      assert.equal((await ann.call('POST', '/v2/serverless', { templateId: 'nosuchone' })).status, 404);
      assert.equal(
        (await ann.call('PATCH', `/v2/serverless/${body.id}`, { templateId: pod.id })).status,
        422,
      );
      const other = await createTemplate('applied', { imageName: 'local/applied', env: { T: '1', U: '1' } });
      const { body: applied } = await ann.call<EndpointView>('PATCH', `/v2/serverless/${body.id}`, {
        templateId: other,
        env: { U: '2' },
        disk: 9,
      });
      assert.partialDeepStrictEqual(applied, {
        name: 'base',
        image: 'local/applied',
        env: { T: '1', U: '2' },
        disk: 9,
        args: '',
      });
    });

    test('change only in the given fields, the same by PATCH and by the update of v1', async () => {
      const [patched, posted] = [
        await createInV1({ name: 'a', gpuTypeIds: [A40] }),
        await createInV1({ name: 'a', gpuTypeIds: [A40] }),
      ];
      const change = { name: 'b', workersMax: 5, gpuTypeIds: [RTX_4090], scalerValue: 7, flashboot: true };
      const {
        id: _,
        createdAt: __,
        ...one
      } = (await ann.call<EndpointView>('PATCH', `/v1/endpoints/${patched.id}`, change)).body;
      const {
        id: ___,
        createdAt: ____,
        ...other
      } = (await ann.call<EndpointView>('POST', `/v1/endpoints/${posted.id}/update`, change)).body;
      assert.deepEqual(one, other);
      assert.partialDeepStrictEqual(one, { ...change, workersMin: 0, idleTimeout: 5, version: 1 });
      assert.equal(
        (
          await ann.call<EndpointView>('PATCH', `/v1/endpoints/${patched.id}`, {
            workersMin: 2,
            idleTimeout: 9,
          })
        ).body['version'],
        1,
        'what takes effect in place is no release',
      );
      assert.deepEqual(
        (await ann.call<EndpointView>('PATCH', `/v1/endpoints/${patched.id}`, {})).body['name'],
        'b',
      );

      const { body: made } = await ann.call<EndpointView>('POST', '/v2/serverless', {
        ...GPU_ENDPOINT,
        env: { A: '1' },
        gpu: { pools: ['AMPERE_48'], excludedTypes: [A40], allowedCudaVersions: ['12.8'] },
      });
      const patch = async (body: object): Promise<EndpointView> =>
        (await ann.call<EndpointView>('PATCH', `/v2/serverless/${made.id}`, body)).body;
      assert.deepEqual(await patch({}), made);
      assert.deepEqual((await patch({ gpu: { count: 2 } }))['gpu'], {
        pools: ['AMPERE_48'],
        excludedTypes: [A40],
        count: 2,
        allowedCudaVersions: ['12.8'],
        minCudaVersion: null,
      });
      assert.partialDeepStrictEqual(await patch({ gpu: { pools: ['AMPERE_48', 'ADA_24'] } }), {
        gpu: { pools: ['AMPERE_48', 'ADA_24'], excludedTypes: [], count: 2 },
      });
      assert.partialDeepStrictEqual(
        await patch({ gpu: { allowedCudaVersions: [], minCudaVersion: '12.4' } }),
        { gpu: { allowedCudaVersions: [], minCudaVersion: '12.4' } },
      );
      assert.partialDeepStrictEqual(
        await patch({ gpu: { minCudaVersion: '' }, env: { B: '2' }, retention: 9_000 }),
        { gpu: { minCudaVersion: null }, env: { B: '2' }, retention: 9_000 },
      );
      assert.deepEqual((await patch({ retention: null, workers: { max: 1 } }))['workers'], {
        min: 0,
        max: 1,
        idleTimeout: 10,
      });
      assert.partialDeepStrictEqual(await patch({ scaling: REQUEST_COUNT_SCALING }), {
        scaling: REQUEST_COUNT_SCALING,
        workers: { min: 0, max: 1 },
      });
      assert.ok(
        !(
          'idleTimeout' in
          (await ann.call<{ workers: object }>('GET', `/v2/serverless/${made.id}`)).body.workers
        ),
      );
      assert.partialDeepStrictEqual(await patch({ scaling: { type: 'QUEUE_DELAY', queueDelay: 0.5 } }), {
        scaling: { queueDelay: 0.5 },
        workers: { idleTimeout: 10 },
      });
      assert.equal((await getFromV1(made.id))['scalerValue'], 1);
      assert.partialDeepStrictEqual(await saveInGraphql({ id: made.id, name: 'c', workersMax: 0 }), {
        name: 'c',
        workersMax: 0,
        gpuCount: 2,
        scalerValue: 1,
      });
      assert.deepEqual((await getFromV2(made.id))['scaling'], { type: 'QUEUE_DELAY', queueDelay: 0.5 });
    });

    test('are listed with all that belongs to them while some of them go', async () => {
      const going = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          saveInGraphql({
            name: `going ${index}`,
            gpuIds: 'ADA_24',
            workersMax: 0,
            template: { imageName: 'local/echo', containerDiskInGb: 5 },
          }),
        ),
      );
      let gone = false;
      const removing = Promise.all(going.map(({ id }) => ann.call('DELETE', `/v1/endpoints/${id}`))).finally(
        () => (gone = true),
      );
      const refused: unknown[] = [];
      const look = async (path: string): Promise<void> => {
        const { status, body } = await ann.call('GET', path);
        if (status !== 200) refused.push(body);
      };
      const lookInGraphql = async (): Promise<void> => {
        const { body } = await ann.graphql('{ myself { endpoints { id template { id } pods { id } } } }');
        if (body.errors !== undefined) refused.push(body.errors);
      };
      while (!gone)
        await Promise.all([
          look('/v1/endpoints?includeTemplate=true'),
          look('/v1/endpoints?includeWorkers=true'),
          lookInGraphql(),
        ]);
      assert.deepEqual(
        (await removing).map(({ status }) => status),
        going.map(() => 204),
      );
      assert.deepEqual(refused, []);
    });

    test('roll back to a release without its deleted registry; a deleted volume is an error', async () => {
      const registry = (
        await ann.call<EndpointView>('POST', '/v2/registries', {
          name: 'passing',
          username: 'u',
          password: 'p',
        })
      ).body.id;
      const networkVolume = await createVolume();
      const [one, two] = [
        await createInV2({ registry }),
        await createInV2({ networkVolumes: [networkVolume] }),
      ];
      for (const { id } of [one, two])
        await ann.call('PATCH', `/v2/serverless/${id}`, { image: 'local/other', networkVolumes: [] });
      assert.equal((await ann.call('DELETE', `/v2/registries/${registry}`)).status, 204);
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${networkVolume}`)).status, 204);
      const back = (id: string) =>
        ann.call<{ detail?: string }>('POST', `/v2/serverless/${id}/releases/0/rollback`);
      assert.equal((await back(one.id)).status, 200);
      assert.partialDeepStrictEqual(await getFromV2(one.id), { image: 'local/echo', registry: null });
      const { status, body } = await back(two.id);
      assert.deepEqual(
        [
          status,
          body.detail?.includes(`release 0 used network volume "${networkVolume}", which was deleted`),
        ],
        [400, true],
        JSON.stringify(body),
      );
      assert.equal((await getFromV2(two.id))['image'], 'local/other');
    });

    test('made with a template of their own by GraphQL take it along', async () => {
      const input = {
        name: 'flash -fb',
        template: {
          name: 'inline',
          imageName: 'local/inline',
          containerDiskInGb: 5,
          env: [{ key: 'A', value: '1' }],
        },
        gpuIds: 'ADA_24',
      };
      const made = await saveInGraphql(input);
      assert.partialDeepStrictEqual(made, {
        flashBootType: 'FLASHBOOT',
        template: { imageName: 'local/inline', isServerless: true },
        env: [{ key: 'A', value: '1' }],
      });
      const own = String(made['templateId']);
      assert.equal((await ann.call<EndpointView>('GET', `/v1/templates/${own}`)).body.name, 'inline');
      const listed = async (query: string): Promise<boolean> =>
        (await ann.call<EndpointView[]>('GET', `/v1/templates${query}`)).body.some(({ id }) => id === own);
      assert.deepEqual(
        [await listed(''), await listed('?includeEndpointBoundTemplates=true')],
        [false, true],
      );
      const { body: bound } = await ann.graphql(`{ podTemplate(id: "${own}") { boundEndpointId } }`);
      assert.deepEqual(bound.data, { podTemplate: { boundEndpointId: made.id } });
      assert.equal((await ann.call('DELETE', `/v1/templates/${own}`)).status, 400);
      await ann.graphql(
        `mutation { saveTemplate(input: { id: "${own}", imageName: "local/changed" }) { id } }`,
      );
      assert.equal((await getFromV2(made.id))['image'], 'local/changed');
      assert.partialDeepStrictEqual(
        await saveInGraphql({ id: made.id, template: { imageName: 'local/again' } }),
        {
          templateId: own,
          template: { imageName: 'local/again' },
        },
      );
      const before = await getFromGraphql(made.id);
      assert.match(
        await graphqlRefusal({
          id: made.id,
          networkVolumeId: 'gone',
          template: { imageName: 'local/refused' },
        }),
        /"gone" does not exist/,
      );
      assert.match(
        await graphqlRefusal({ id: made.id, template: { isServerless: false, volumeInGb: 5 } }),
        /volume size must be 0/,
      );
      assert.deepEqual(await getFromGraphql(made.id), before);
      assert.partialDeepStrictEqual(
        await saveInGraphql({ id: made.id, gpuCount: 2, template: { imageName: 'local/last' } }),
        { gpuCount: 2, version: Number(before?.['version']) + 1 },
      );

      const { body: moved } = await ann.graphql<{ updateEndpointTemplate: EndpointView }>(
        `mutation { updateEndpointTemplate(input: { endpointId: "${made.id}", templateId:
          "${templateId}" }) { id templateId } }`,
      );
      assert.deepEqual(moved.data?.updateEndpointTemplate, { id: made.id, templateId });
      assert.equal((await ann.call('GET', `/v1/templates/${own}`)).status, 404, 'nothing else used it');
      assert.equal((await getFromV2(made.id))['image'], 'local/echo');
      assert.match(
        await graphqlRefusal({ name: 'x' }),
        /exactly one of templateId, template and hubReleaseId/,
      );
      assert.match(
        await graphqlRefusal({ name: 'x', templateId, template: { imageName: 'y' } }),
        /exactly one of templateId, template and hubReleaseId/,
      );
      assert.match(await graphqlRefusal({ name: 'x', hubReleaseId: 'y' }), /hub release "y" not found/);
    });

    test('are deleted through each interface, and gone in all; their volumes are free then', async () => {
      const networkVolume = await createVolume();
      const made = [
        await createInV1({ networkVolumeId: networkVolume }),
        await createInV2(),
        await saveInGraphql({ name: 'x', templateId, workersMin: 1, workersMax: 1 }),
      ];
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${networkVolume}`)).status, 400);
      assert.equal((await ann.call('DELETE', `/v1/networkvolumes/${networkVolume}`)).status, 400);
      assert.equal((await ann.call('DELETE', `/v1/endpoints/${made[0]?.id}`)).status, 204);
      assert.equal((await ann.call('DELETE', `/v2/serverless/${made[1]?.id}`)).status, 204);
      const { text } = await ann.graphql(`mutation { deleteEndpoint(id: "${made[2]?.id}") }`);
      assert.equal(text, '{"data":{"deleteEndpoint":null}}');
      for (const { id } of made) {
        assert.deepEqual(
          [
            (await ann.call('GET', `/v1/endpoints/${id}`)).status,
            (await ann.call('GET', `/v2/serverless/${id}`)).status,
            await getFromGraphql(id),
          ],
          [404, 404, null],
        );
        assert.deepEqual(
          [
            (await ann.call('DELETE', `/v1/endpoints/${id}`)).status,
            (await ann.call('DELETE', `/v2/serverless/${id}`)).status,
          ],
          [404, 404],
        );
      }
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${networkVolume}`)).status, 204);
      assert.deepEqual(
        (await listAuditLog(ann)).filter(
          ({ resource, action }) => resource === 'endpoint' && action === 'delete',
        ).length >= 3,
        true,
      );
    });
  });
}
