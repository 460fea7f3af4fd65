import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  A40,
  QUEUE_DELAY_SCALING,
  endpointInterfaces,
  GPU_ENDPOINT,
  RTX_4090,
} from '../packages/testing/src/endpoint-interfaces.ts';
import type { EndpointView, EndpointPage } from '../packages/testing/src/endpoint-interfaces.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { wholeEndpointsSuite } from './endpoints/whole-endpoints.suite.ts';

for (const kind of DATABASES) {
  describe(`endpoints in every interface, on ${kind}`, () => {
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

    test('through v1: 200 with a bare object, filled in from the template and the defaults of v1', async () => {
      const made = await createInV1();
      assert.match(made.id, /^[a-z0-9]{14}$/);
      assert.deepEqual(made, {
        id: made.id,
        name: 'base',
        userId: ann.id,
        templateId,
        computeType: 'GPU',
        gpuTypeIds: [],
        gpuCount: 1,
        gpuIds: '',
        instanceIds: [],
        allowedCudaVersions: [],
        dataCenterIds: [],
        locations: '',
        networkVolumeIds: [],
        env: { A: '1', B: '2' },
        executionTimeoutMs: 600_000,
        idleTimeout: 5,
        scalerType: 'QUEUE_DELAY',
        scalerValue: 4,
        workersMin: 0,
        workersMax: 3,
        flashboot: false,
        flashBootType: 'OFF',
        modelReferences: [],
        version: 0,
        createdAt: made['createdAt'],
      });
      assert.deepEqual(await getFromV1(made.id), made);
      assert.deepEqual((await ann.call('GET', '/v1/endpoints?includeWorkers=true')).body, [
        { ...made, workers: [] },
      ]);
      const { body: withTemplate } = await ann.call<EndpointView>(
        'GET',
        `/v1/endpoints/${made.id}?includeTemplate=true`,
      );
      assert.partialDeepStrictEqual(withTemplate, {
        ...made,
        template: {
          id: templateId,
          imageName: 'local/echo',
          dockerStartCmd: ['run', 'it'],
          isServerless: true,
        },
      });
    });

    test('through v2: 201 with the defaults of v2, whole addresses, and a wrapped list', async () => {
      const made = await createInV2();
      const base = `${fixture.server.url}/v2/${made.id}`;
      assert.deepEqual(made, {
        id: made.id,
        name: 'small',
        type: 'QUEUE',
        image: 'local/echo',
        args: '',
        cmd: [],
        entrypoint: [],
        disk: 20,
        env: {},
        ports: [],
        registry: null,
        gpu: null,
        cpu: [{ id: 'cpu3g', vcpuCount: 2, memory: 8 }],
        requestUrls: {
          run: `${base}/run`,
          runSync: `${base}/runsync`,
          status: `${base}/status/{job_id}`,
          stream: `${base}/stream/{job_id}`,
          cancel: `${base}/cancel/{job_id}`,
          retry: `${base}/retry/{job_id}`,
          purgeQueue: `${base}/purge-queue`,
          health: `${base}/health`,
        },
        workers: { min: 0, max: 3, idleTimeout: 10 },
        scaling: QUEUE_DELAY_SCALING,
        dataCenterIds: [],
        networkVolumes: [],
        timeout: 300_000,
        flashboot: 'OFF',
        accelerate: false,
        jobTtl: 86_400_000,
        retention: null,
        maxRetries: 1,
        createdAt: made['createdAt'],
      });
      assert.deepEqual(await getFromV2(made.id), made);
      const { body: page } = await ann.call<EndpointPage>('GET', '/v2/serverless');
      assert.deepEqual(page.endpoints[0], made);
      assert.deepEqual(page.pagination, { nextCursor: null, hasNextPage: false });
    });

    test('through GraphQL: made by a template, filled in like v1', async () => {
      const made = await saveInGraphql({ name: 'graph', templateId, gpuIds: 'ADA_24' });
      assert.deepEqual(made, {
        id: made.id,
        name: 'graph',
        aiKey: null,
        userId: ann.id,
        type: 'QB',
        version: 0,
        createdAt: made['createdAt'],
        templateId,
        computeType: 'GPU',
        gpuIds: 'ADA_24',
        gpuCount: 1,
        instanceIds: [],
        allowedCudaVersions: '',
        minCudaVersion: null,
        locations: '',
        compliance: [],
        networkVolumeId: null,
        networkVolume: null,
        networkVolumeIds: [],
        env: [
          { key: 'A', value: '1' },
          { key: 'B', value: '2' },
        ],
        idleTimeout: 5,
        executionTimeoutMs: 600_000,
        scalerType: 'QUEUE_DELAY',
        scalerValue: 4,
        workersMin: 0,
        workersMax: 3,
        workersStandby: 0,
        workersPFBTarget: 0,
        flashBootType: 'OFF',
        modelReferences: [],
        template: {
          id: templateId,
          imageName: 'local/echo',
          isServerless: true,
          env: [
            { key: 'A', value: '1' },
            { key: 'B', value: '2' },
          ],
        },
      });
      assert.deepEqual(await getFromGraphql(made.id), made);
      const { body } = await ann.graphql<{ myself: { endpoints: EndpointView[] } }>(
        `{ myself { endpoints { id } } }`,
      );
      assert.equal(body.data?.myself.endpoints[0]?.id, made.id);
      assert.equal(await getFromGraphql('nosuchendpoint'), null);
    });

    wholeEndpointsSuite(() => ({ ann, templateId, url: fixture.server.url }));

    test('run on CPUs where that is asked for, in each way of asking', async () => {
      const one = await createInV1({
        computeType: 'CPU',
        cpuFlavorIds: ['cpu5c', 'cpu3g'],
        vcpuCount: 4,
        gpuTypeIds: [A40],
      });
      assert.partialDeepStrictEqual(one, {
        computeType: 'CPU',
        instanceIds: ['cpu5c-4-8', 'cpu3g-4-16'],
        gpuTypeIds: [],
        gpuCount: 0,
      });
      assert.deepEqual((await createInV1({ computeType: 'CPU' }))['instanceIds'], [
        'cpu3c-2-4',
        'cpu3g-2-8',
        'cpu5c-2-4',
        'cpu5g-2-8',
      ]);
      const { body: smaller } = await ann.call<EndpointView>('PATCH', `/v1/endpoints/${one.id}`, {
        vcpuCount: 2,
      });
      assert.deepEqual(smaller['instanceIds'], ['cpu5c-2-4', 'cpu3g-2-8']);
      const { body: other } = await ann.call<EndpointView>('PATCH', `/v2/serverless/${one.id}`, {
        cpu: [
          { id: 'cpu3c', vcpuCount: 8 },
          { id: 'cpu3c', vcpuCount: 2 },
        ],
      });
      assert.deepEqual(other['cpu'], [
        { id: 'cpu3c', vcpuCount: 8, memory: 16 },
        { id: 'cpu3c', vcpuCount: 2, memory: 4 },
      ]);
      assert.partialDeepStrictEqual(
        await saveInGraphql({ name: 'cpu', templateId, instanceIds: ['cpu3g-1-4'] }),
        {
          computeType: 'CPU',
          instanceIds: ['cpu3g-1-4'],
          gpuCount: 0,
        },
      );
      assert.match(
        await graphqlRefusal({ name: 'cpu', templateId, instanceIds: ['cpu3g-4-17'] }),
        /cpu3g-4-16/,
      );
    });

    test('show their workers and their template where that is asked for, in v1 and GraphQL as in v2', async () => {
      const runs = await createTemplate('staffed');
      const { id, version } = await createInV1({
        name: 'staffed',
        templateId: runs,
        computeType: 'CPU',
        workersMin: 1,
        workersMax: 1,
      });
      const own = await waitFor('its worker is ready', async () => {
        const { body } = await ann.call<{ workers: EndpointView[] }>('GET', `/v2/serverless/${id}/workers`);
        return body.workers.find(({ status }) => status === 'IDLE');
      });
      const { body: whole } = await ann.call<EndpointView>(
        'GET',
        `/v1/endpoints/${id}?includeWorkers=true&includeTemplate=true`,
      );
      assert.partialDeepStrictEqual(whole, { id, template: { id: runs, imageName: 'local/echo' } });
      assert.deepEqual(whole['workers'], [
        {
          id: own.id,
          name: 'staffed',
          endpointId: id,
          aiApiId: id,
          slsVersion: version,
          consumerUserId: ann.id,
          desiredStatus: 'RUNNING',
          lastStatusChange: 'IDLE',
          lastStartedAt: own['startedAt'],
          image: 'local/echo',
          machine: { dataCenterId: 'LOCAL-1' },
          interruptible: false,
          locked: false,
        },
      ]);
      const { body: all } = await ann.call<EndpointView[]>('GET', '/v1/endpoints?includeWorkers=true');
      assert.deepEqual(
        all.find((found) => found.id === id),
        { ...(await getFromV1(id)), workers: whole['workers'] },
      );
      assert.ok(!('workers' in (await getFromV1(id))) && !('template' in (await getFromV1(id))));
      const podFields =
        'id name imageName desiredStatus lastStatusChange lastStartedAt slsVersion endpointId gpuCount';
      const query = `{ myself { endpoint(id: "${id}") {
        template { id } pods { ${podFields} machine { dataCenterId gpuTypeId } }
      } } }`;
      const { body } = await ann.graphql<{ myself: { endpoint: EndpointView } }>(query);
      assert.deepEqual(body.data?.myself.endpoint, {
        template: { id: runs },
        pods: [
          {
            id: own.id,
            name: 'staffed',
            imageName: 'local/echo',
            desiredStatus: 'RUNNING',
            lastStatusChange: 'IDLE',
            lastStartedAt: own['startedAt'],
            slsVersion: version,
            endpointId: id,
            gpuCount: own['gpuCount'],
            machine: { dataCenterId: 'LOCAL-1', gpuTypeId: null },
          },
        ],
      });
      assert.equal((await ann.call('DELETE', `/v1/endpoints/${id}`)).status, 204);
    });

    test('read through v1 and written back through GraphQL change only in what was meant', async () => {
      const networkVolume = await createVolume();
      const [linked, { body: own }] = [
        await createInV1({
          name: 'ctl',
          gpuTypeIds: [A40, RTX_4090],
          networkVolumeId: networkVolume,
          dataCenterIds: ['LOCAL-1'],
          minCudaVersion: '12.1',
        }),
        await ann.call<EndpointView>('POST', '/v2/serverless', {
          ...GPU_ENDPOINT,
          scaling: { type: 'QUEUE_DELAY', queueDelay: 0.5 },
          flashboot: 'PRIORITY_FLASHBOOT',
        }),
      ];
      for (const { id } of [linked, own]) {
        const before = { v1: await getFromV1(id), v2: await getFromV2(id) };
        const input = Object.fromEntries(
          Object.entries(before.v1).map(([field, value]) => [field, value ?? '']),
        );
        await saveInGraphql({
          ...input,
          userId: undefined,
          env: undefined,
          allowedCudaVersions: '',
          modelReferences: ['org/model'],
          networkVolumeIds: (before.v1['networkVolumeIds'] as string[]).map((networkVolumeId) => ({
            networkVolumeId,
          })),
        });
        assert.deepEqual(await getFromV1(id), {
          ...before.v1,
          modelReferences: ['org/model'],
          version: Number(before.v1['version']) + 1,
        });
        assert.deepEqual(await getFromV2(id), before.v2);
      }
    });

    test('belong to one account, and are paged newest first', async () => {
      const bob = await fixture.createAccount('bob');
      const { id } = await createInV2();
      for (const path of [`/v1/endpoints/${id}`, `/v2/serverless/${id}`]) {
        assert.deepEqual(
          [
            (await bob.call('GET', path)).status,
            (await bob.call('PATCH', path, { name: 'mine' })).status,
            (await bob.call('DELETE', path)).status,
          ],
          [404, 404, 404],
        );
      }
      assert.deepEqual((await bob.call('GET', '/v1/endpoints')).body, []);
      const { body: all } = await ann.call<EndpointPage>('GET', '/v2/serverless');
      const seen: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const { body: page }: { body: EndpointPage } = await ann.call<EndpointPage>(
          'GET',
          `/v2/serverless?limit=5${cursor === '' ? '' : `&cursor=${cursor}`}`,
        );
        seen.push(...page.endpoints.map((found) => found.id));
        cursor = page.pagination.nextCursor;
      }
      assert.deepEqual(
        seen,
        all.endpoints.map((found) => found.id),
      );
      assert.equal((await ann.call('GET', '/v2/serverless?cursor=nonsense')).status, 422);
    });
  });
}
