import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';

interface Gpu {
  id: string;
  name: string;
  maxCount: { secure: number };
  virtual: boolean;
  availability?: string;
  dataCenters?: { id: string; availability: string }[];
  cudaVersions?: unknown[];
}

for (const kind of DATABASES) {
  describe(`the catalog, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_GPUS: 'NVIDIA GeForce RTX 4090,NVIDIA A40' });
    const get = async <T>(path: string): Promise<T> => {
      const { status, body, text } = await fixture.operator.call<T>('GET', `/v2/catalog/${path}`);
      assert.equal(status, 200, text);
      return body;
    };
    const status = async (path: string): Promise<number> =>
      (await fixture.operator.call('GET', `/v2/catalog/${path}`)).status;

    test('lists GPU types, and marks which are present and which are virtual', async () => {
      const { gpus } = await get<{ gpus: Gpu[] }>('gpus');
      const here = gpus.filter(({ maxCount }) => maxCount.secure > 0);
      assert.ok(here.some(({ id }) => id === 'NVIDIA A40') && gpus.length > here.length);
      assert.ok(
        gpus.every(
          (gpu) =>
            gpu.availability === undefined && gpu.dataCenters === undefined && gpu.cudaVersions === undefined,
        ),
      );
      assert.deepEqual(
        await get('gpus/NVIDIA%20A40'),
        gpus.find(({ id }) => id === 'NVIDIA A40'),
      );
      assert.equal(await status('gpus/NVIDIA%20A999'), 404);
    });

    test('is said of pods, endpoints and workers in REST v1 and GraphQL too', async (t) => {
      const { operator } = fixture;
      const own = (path: string, body: object) => operator.call<Record<string, unknown>>('POST', path, body);
      const pod = await own('/v1/pods', {
        name: 'named',
        imageName: 'local/shell',
        gpuTypeIds: ['NVIDIA A40'],
        dockerStartCmd: ['sleep', '1000'],
      });
      const template = await own('/v1/templates', {
        name: 'named',
        imageName: 'local/echo',
        isServerless: true,
      });
      const endpoint = await own('/v1/endpoints', {
        name: 'named',
        templateId: template.body['id'],
        gpuTypeIds: ['NVIDIA A40', 'NVIDIA L4'],
        workersMin: 1,
      });
      const { id } = endpoint.body as { id: string };
      t.after(async () => {
        await operator.call('DELETE', `/v1/pods/${pod.body['id'] as string}`);
        await operator.call('DELETE', `/v2/serverless/${id}`);
        await operator.call('DELETE', `/v1/templates/${template.body['id'] as string}`);
      });
      assert.equal((pod.body['gpu'] as { virtual?: boolean }).virtual, true, pod.text);
      assert.deepEqual(endpoint.body['virtualGpuTypeIds'], ['NVIDIA A40'], endpoint.text);
      const worker = await waitFor('a worker has a place', async () => {
        const { body } = await operator.call<{ workers: { gpu?: { id: string; virtual?: boolean } }[] }>(
          'GET',
          `/v1/endpoints/${id}?includeWorkers=true`,
        );
        return body.workers[0]?.gpu;
      });
      assert.deepEqual([worker.id, worker.virtual], ['NVIDIA A40', true]);
      const { body } = await own('/graphql', {
        query: `{ myself {
          pods { id machine { gpuVirtual gpuType { virtual } } }
          endpoints { virtualGpuTypeIds pods { machine { gpuVirtual } } } } }`,
      });
      assert.deepEqual((body['data'] as { myself: unknown }).myself, {
        pods: [{ id: pod.body['id'], machine: { gpuVirtual: true, gpuType: { virtual: true } } }],
        endpoints: [{ virtualGpuTypeIds: ['NVIDIA A40'], pods: [{ machine: { gpuVirtual: true } }] }],
      });
    });

    test('reports stock on request, and refuses a filter without effect', async () => {
      const gpu = await get<Gpu>('gpus/NVIDIA%20A40?include=AVAILABILITY&product=POD&count=1');
      assert.notEqual(gpu.availability, 'NONE');
      assert.deepEqual(
        gpu.dataCenters?.map(({ id }) => id),
        ['LOCAL-1'],
      );
      assert.equal(
        (await get<Gpu>('gpus/NVIDIA%20A40?include=AVAILABILITY&product=POD&count=900')).availability,
        'NONE',
      );
      for (const query of [
        'product=POD',
        'count=1',
        'cudaVersions=12.8',
        'include=AVAILABILITY&cudaVersions=12.8&minCudaVersion=12.0',
      ])
        assert.equal(await status(`gpus?${query}`), 400, query);
      for (const query of [
        'include=EVERYTHING',
        'include=AVAILABILITY&product=YACHT',
        'include=AVAILABILITY&count=0',
        'include=AVAILABILITY&cudaVersions=new',
        'include=AVAILABILITY&countryCodes=GERMANY',
      ])
        assert.equal(await status(`gpus?${query}`), 422, query);
    });

    test('drops types without machines in a country from the list, while the single type still answers', async () => {
      assert.deepEqual(
        (await get<{ gpus: Gpu[] }>('gpus?include=AVAILABILITY&product=POD&countryCodes=ZZ')).gpus,
        [],
      );
      assert.equal(
        (await get<Gpu>('gpus/NVIDIA%20A40?include=AVAILABILITY&product=POD&countryCodes=ZZ')).availability,
        'NONE',
      );
    });

    test('lists CPU flavours', async () => {
      const { cpus } = await get<{ cpus: { id: string }[] }>('cpus');
      assert.ok(cpus.some(({ id }) => id === 'cpu3c'));
      assert.deepEqual(
        await get('cpus/cpu3c'),
        cpus.find(({ id }) => id === 'cpu3c'),
      );
      assert.equal(await status('cpus/cpu9x'), 404);
      assert.ok('availability' in (await get<object>('cpus/cpu3c?include=AVAILABILITY&product=POD')));
      assert.equal(await status('cpus?vcpuCount=2'), 400);
      assert.equal(await status('cpus?include=AVAILABILITY&vcpuCount=1'), 422);
    });

    test('lists data centers, by their filters', async () => {
      const ids = async (query = ''): Promise<string[]> =>
        (await get<{ dataCenters: { id: string }[] }>(`datacenters${query}`)).dataCenters.map(({ id }) => id);
      assert.deepEqual(await ids(), ['LOCAL-1']);
      assert.deepEqual(await ids('?regions=EUROPE,UNKNOWN&networkVolumeTypes=STANDARD,HIGH_PERFORMANCE'), [
        'LOCAL-1',
      ]);
      assert.deepEqual(await ids('?regions=EUROPE'), []);
      assert.deepEqual(await ids('?compliance=GDPR'), []);
      assert.deepEqual(await ids('?globalNetwork=true'), []);
      assert.equal(await status('datacenters?regions=ATLANTIS'), 422);
      assert.equal(await status('datacenters/ATLANTIS-1'), 404);
      const stocked = await get<{ gpuAvailability: unknown[]; cpuAvailability: unknown[] }>(
        'datacenters/LOCAL-1?include=GPU_AVAILABILITY,CPU_AVAILABILITY',
      );
      assert.ok(stocked.gpuAvailability.length > 0 && stocked.cpuAvailability.length > 0);
    });

    test('lists the templates that come with the installation', async () => {
      const official = await get<{ templates: { id: string }[]; pagination: object }>('templates');
      assert.ok(official.templates.some(({ id }) => id === 'berth-shell'));
      assert.deepEqual(official.pagination, { nextCursor: null, hasNextPage: false });
      assert.deepEqual((await get<{ templates: object[] }>('templates?source=verified')).templates, []);
      assert.equal(await status('templates?source=somewhere'), 422);
    });

    test('needs a key', async () => {
      for (const path of ['gpus', 'cpus', 'datacenters', 'templates'])
        assert.equal((await fixture.client(undefined).call('GET', `/v2/catalog/${path}`)).status, 401);
    });
  });
}
