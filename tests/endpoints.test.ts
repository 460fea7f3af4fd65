import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from './support/databases.ts';
import { until } from './support/serverless.ts';
import { auditLog, stageOn } from './support/story.ts';
import type { TestAccount } from './support/story.ts';

interface Endpoint {
  id: string;
  name: string;
  [field: string]: unknown;
}
interface Page {
  endpoints: Endpoint[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}

const A40 = 'NVIDIA A40';
const A6000 = 'NVIDIA RTX A6000';
const RTX_4090 = 'NVIDIA GeForce RTX 4090';
const delayed = { type: 'QUEUE_DELAY', queueDelay: 4 };
const counted = { type: 'REQUEST_COUNT', requestCount: 2 };
/** What v2 asks for at least, on a CPU. */
const small = { name: 'small', type: 'QUEUE', image: 'local/echo', scaling: delayed, cpu: [{ id: 'cpu3g', vcpuCount: 2 }] };
const onGpu = { name: 'gpu', type: 'QUEUE', image: 'local/echo', scaling: delayed, gpu: { pools: ['ADA_24'] } };

/** Everything that GraphQL tells of an endpoint. */
const FIELDS = `id name aiKey userId type version createdAt templateId computeType gpuIds gpuCount instanceIds allowedCudaVersions minCudaVersion locations compliance networkVolumeId
  networkVolume { id dataCenterId } networkVolumeIds { networkVolumeId dataCenterId } env { key value } idleTimeout executionTimeoutMs scalerType scalerValue workersMin workersMax workersStandby
  workersPFBTarget flashBootType modelReferences template { id imageName isServerless env { key value } }`;

for (const kind of DATABASES) {
  describe(`endpoints, on ${kind}`, () => {
    const stage = stageOn(kind);
    let ann: TestAccount;
    let templateId: string;
    before(async () => {
      ann = await stage.account('ann');
      templateId = await template('base', { env: { A: '1', B: '2' }, dockerStartCmd: ['run', 'it'], ports: ['80/http'], containerDiskInGb: 7 });
    });

    const template = async (name: string, fields: object = {}): Promise<string> => (await ann.call<Endpoint>('POST', '/v1/templates', { name, imageName: 'local/echo', isServerless: true, ...fields })).body.id;
    const volume = async (): Promise<string> => (await ann.call<Endpoint>('POST', '/v2/network-volumes', { name: 'data', size: 10, dataCenter: 'LOCAL-1' })).body.id;
    const v1 = async (fields: object = {}): Promise<Endpoint> => {
      const { status, body } = await ann.call<Endpoint>('POST', '/v1/endpoints', { templateId, ...fields });
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    };
    const v2 = async (fields: object = {}): Promise<Endpoint> => {
      const { status, body } = await ann.call<Endpoint>('POST', '/v2/serverless', { ...small, ...fields });
      assert.equal(status, 201, JSON.stringify(body));
      return body;
    };
    const save = async (input: object): Promise<Endpoint> => {
      const { body } = await ann.graphql<{ saveEndpoint: Endpoint }>(`mutation ($input: EndpointInput) { saveEndpoint(input: $input) { ${FIELDS} } }`, { input });
      assert.ok(body.data !== undefined && body.errors === undefined, JSON.stringify(body.errors));
      return body.data.saveEndpoint;
    };
    const refusal = async (input: object): Promise<string> => {
      const { status, body } = await ann.graphql(`mutation ($input: EndpointInput) { saveEndpoint(input: $input) { id } }`, { input });
      assert.equal(status, 200);
      return body.errors?.[0]?.message ?? 'accepted';
    };
    const inV1 = async (id: string): Promise<Endpoint> => (await ann.call<Endpoint>('GET', `/v1/endpoints/${id}`)).body;
    const inV2 = async (id: string): Promise<Endpoint> => (await ann.call<Endpoint>('GET', `/v2/serverless/${id}`)).body;
    const inGraphql = async (id: string): Promise<Endpoint | null> => {
      const { body } = await ann.graphql<{ myself: { endpoint: Endpoint | null } }>(`query ($id: String) { myself { endpoint(id: $id) { ${FIELDS} } } }`, { id });
      assert.ok(body.data !== undefined, JSON.stringify(body.errors));
      return body.data.myself.endpoint;
    };

    test('through v1: 200 with a bare object, filled in from the template and the defaults of v1', async () => {
      const made = await v1();
      assert.match(made.id, /^[a-z0-9]{14}$/);
      assert.deepEqual(made, {
        id: made.id, name: 'base', userId: ann.id, templateId, computeType: 'GPU', gpuTypeIds: [], gpuCount: 1, gpuIds: '', instanceIds: [], allowedCudaVersions: [], minCudaVersion: null, dataCenterIds: [], locations: '',
        networkVolumeId: null, networkVolumeIds: [], env: { A: '1', B: '2' }, executionTimeoutMs: 600_000, idleTimeout: 5, scalerType: 'QUEUE_DELAY', scalerValue: 4, workersMin: 0, workersMax: 3, flashboot: false, flashBootType: 'OFF',
        modelReferences: [], version: 0, createdAt: made['createdAt'],
      });
      assert.deepEqual(await inV1(made.id), made);
      assert.deepEqual((await ann.call('GET', '/v1/endpoints?includeWorkers=true')).body, [{ ...made, workers: [] }]);
      const { body: withTemplate } = await ann.call<Endpoint>('GET', `/v1/endpoints/${made.id}?includeTemplate=true`);
      assert.partialDeepStrictEqual(withTemplate, { ...made, template: { id: templateId, imageName: 'local/echo', dockerStartCmd: ['run', 'it'], isServerless: true } });
    });

    test('through v2: 201 with the defaults of v2, whole addresses, and a wrapped list', async () => {
      const made = await v2();
      const base = `${stage.server.url}/v2/${made.id}`;
      assert.deepEqual(made, {
        id: made.id, name: 'small', type: 'QUEUE', image: 'local/echo', args: '', cmd: [], entrypoint: [], disk: 20, env: {}, ports: [], registry: null, gpu: null, cpu: [{ id: 'cpu3g', vcpuCount: 2, memory: 8 }],
        requestUrls: {
          run: `${base}/run`, runSync: `${base}/runsync`, status: `${base}/status/{job_id}`, stream: `${base}/stream/{job_id}`, cancel: `${base}/cancel/{job_id}`, retry: `${base}/retry/{job_id}`,
          purgeQueue: `${base}/purge-queue`, health: `${base}/health`,
        },
        workers: { min: 0, max: 3, idleTimeout: 10 }, scaling: delayed, dataCenterIds: [], networkVolumes: [], timeout: 300_000, flashboot: 'OFF', jobTtl: 86_400_000, retention: null, maxRetries: 1, createdAt: made['createdAt'],
      });
      assert.deepEqual(await inV2(made.id), made);
      const { body: page } = await ann.call<Page>('GET', '/v2/serverless');
      assert.deepEqual(page.endpoints[0], made);
      assert.deepEqual(page.pagination, { nextCursor: null, hasNextPage: false });
    });

    test('through GraphQL: made by a template, filled in like v1', async () => {
      const made = await save({ name: 'graph', templateId, gpuIds: 'ADA_24' });
      assert.deepEqual(made, {
        id: made.id, name: 'graph', aiKey: null, userId: ann.id, type: 'QB', version: 0, createdAt: made['createdAt'], templateId, computeType: 'GPU', gpuIds: 'ADA_24', gpuCount: 1, instanceIds: [], allowedCudaVersions: '',
        minCudaVersion: null, locations: '', compliance: [], networkVolumeId: null, networkVolume: null, networkVolumeIds: [], env: [{ key: 'A', value: '1' }, { key: 'B', value: '2' }], idleTimeout: 5, executionTimeoutMs: 600_000,
        scalerType: 'QUEUE_DELAY', scalerValue: 4, workersMin: 0, workersMax: 3, workersStandby: 0, workersPFBTarget: 0, flashBootType: 'OFF', modelReferences: [],
        template: { id: templateId, imageName: 'local/echo', isServerless: true, env: [{ key: 'A', value: '1' }, { key: 'B', value: '2' }] },
      });
      assert.deepEqual(await inGraphql(made.id), made);
      const { body } = await ann.graphql<{ myself: { endpoints: Endpoint[] } }>(`{ myself { endpoints { id } } }`);
      assert.equal(body.data?.myself.endpoints[0]?.id, made.id);
      assert.equal(await inGraphql('nosuchendpoint'), null);
    });

    test('made through v1 with everything, show it in every interface', async () => {
      const networkVolumeId = await volume();
      const fields = {
        name: 'whole', gpuTypeIds: [RTX_4090, A40], gpuCount: 2, dataCenterIds: ['LOCAL-1'], allowedCudaVersions: ['12.8', '12.6'], minCudaVersion: '12.1', networkVolumeId, executionTimeoutMs: 7_000, flashboot: true,
        idleTimeout: 77, scalerType: 'REQUEST_COUNT', scalerValue: 9, workersMin: 1, workersMax: 8,
      };
      const made = await v1(fields);
      assert.partialDeepStrictEqual(made, { ...fields, networkVolumeIds: [networkVolumeId], gpuIds: `ADA_24,AMPERE_48,-${A6000}`, locations: 'LOCAL-1', flashBootType: 'FLASHBOOT' });
      assert.partialDeepStrictEqual(await inV2(made.id), {
        name: 'whole', type: 'QUEUE', image: 'local/echo', args: 'run it', cmd: ['run', 'it'], disk: 7, env: { A: '1', B: '2' }, ports: ['80/http'],
        gpu: { pools: ['ADA_24', 'AMPERE_48'], excludedTypes: [A6000], count: 2, allowedCudaVersions: ['12.8', '12.6'], minCudaVersion: '12.1' },
        workers: { min: 1, max: 8 }, scaling: { type: 'REQUEST_COUNT', requestCount: 9 }, dataCenterIds: ['LOCAL-1'], networkVolumes: [networkVolumeId], timeout: 7_000, flashboot: 'FLASHBOOT',
      });
      assert.partialDeepStrictEqual(await inGraphql(made.id), {
        name: 'whole', type: 'QB', gpuIds: `ADA_24,AMPERE_48,-${A6000}`, gpuCount: 2, allowedCudaVersions: '12.8,12.6', minCudaVersion: '12.1', locations: 'LOCAL-1', networkVolumeId, networkVolume: { id: networkVolumeId, dataCenterId: 'LOCAL-1' },
        networkVolumeIds: [{ networkVolumeId, dataCenterId: 'LOCAL-1' }], executionTimeoutMs: 7_000, flashBootType: 'FLASHBOOT', idleTimeout: 77, scalerType: 'REQUEST_COUNT', scalerValue: 9, workersMin: 1, workersMax: 8,
      });
    });

    test('made through v2 with everything, show it in every interface', async () => {
      const [networkVolume, { body: registry }] = [await volume(), await ann.call<Endpoint>('POST', '/v2/registries', { name: 'hub', username: 'u', password: 'p' })];
      const fields = {
        name: 'whole', type: 'LOAD_BALANCER', image: 'example/server:1', entrypoint: ['sh', '-c'], cmd: ['a b'], disk: 3, env: { PORT: '80', HEALTH_CHECK_PATH: '/up' }, ports: ['80/http'], registry: registry.id,
        gpu: { pools: ['AMPERE_48', 'ADA_24'], excludedTypes: [A40], count: 4, allowedCudaVersions: [], minCudaVersion: '12.1' }, workers: { min: 2, max: 5, idleTimeout: 44 }, scaling: counted,
        dataCenterIds: ['LOCAL-1'], networkVolumes: [networkVolume], timeout: 0, flashboot: 'PRIORITY_FLASHBOOT', jobTtl: 60_000, retention: 5_000, maxRetries: 3,
      };
      const { status, body: made } = await ann.call<Endpoint>('POST', '/v2/serverless', fields);
      assert.equal(status, 201);
      assert.partialDeepStrictEqual(made, { ...fields, args: '{"entrypoint":["sh","-c"],"cmd":["a b"]}', requestUrls: { base: `${stage.server.url}/v2/${made.id}`, health: `${stage.server.url}/v2/${made.id}/up` } });
      assert.partialDeepStrictEqual(await inV1(made.id), {
        templateId: null, gpuTypeIds: [A6000, RTX_4090], gpuIds: `AMPERE_48,ADA_24,-${A40}`, gpuCount: 4, minCudaVersion: '12.1', dataCenterIds: ['LOCAL-1'], networkVolumeIds: [networkVolume], env: fields.env, executionTimeoutMs: 0,
        idleTimeout: 44, scalerType: 'REQUEST_COUNT', scalerValue: 2, workersMin: 2, workersMax: 5, flashboot: true, flashBootType: 'PRIORITY_FLASHBOOT',
      });
      const { body: withTemplate } = await ann.call<Endpoint>('GET', `/v1/endpoints/${made.id}?includeTemplate=true`);
      assert.partialDeepStrictEqual(withTemplate['template'], { imageName: 'example/server:1', dockerEntrypoint: ['sh', '-c'], containerDiskInGb: 3, containerRegistryAuthId: registry.id, isServerless: true });
      assert.partialDeepStrictEqual(await inGraphql(made.id), { type: 'LB', gpuIds: `AMPERE_48,ADA_24,-${A40}`, flashBootType: 'PRIORITY_FLASHBOOT', executionTimeoutMs: 0, template: { imageName: 'example/server:1' } });
      assert.equal((await ann.call('DELETE', `/v2/registries/${registry.id}`)).status, 204);
      assert.equal((await inV2(made.id))['registry'], null);
    });

    test('made through GraphQL with everything, show it in every interface', async () => {
      const networkVolumeId = await volume();
      const input = {
        name: 'whole', templateId, gpuIds: `AMPERE_48,-${A40},NVIDIA GeForce RTX 3070`, gpuCount: 2, type: 'LB', allowedCudaVersions: '12.8, 12.6', minCudaVersion: '12.1', locations: 'LOCAL-1,US', compliance: ['GDPR'],
        networkVolumeIds: [{ networkVolumeId, dataCenterId: 'LOCAL-1' }], env: [{ key: 'B', value: 'mine' }, { key: 'C', value: '' }], idleTimeout: 33, executionTimeoutMs: 9_000, scalerType: 'REQUEST_COUNT', scalerValue: 6,
        workersMin: 1, workersMax: 2, workersStandby: 1, flashBootType: 'FLASHBOOT', modelReferences: ['https://huggingface.co/org/model'],
      };
      const made = await save(input);
      const env = [{ key: 'A', value: '1' }, { key: 'B', value: 'mine' }, { key: 'C', value: '' }];
      assert.partialDeepStrictEqual(made, { ...input, gpuIds: `AMPERE_48,NVIDIA GeForce RTX 3070,-${A40}`, allowedCudaVersions: '12.8,12.6', env, networkVolumeId });
      assert.partialDeepStrictEqual(await inV1(made.id), { gpuTypeIds: ['NVIDIA GeForce RTX 3070', A6000], locations: 'LOCAL-1,US', dataCenterIds: ['LOCAL-1'], env: { A: '1', B: 'mine', C: '' }, modelReferences: input.modelReferences });
      assert.partialDeepStrictEqual(await inV2(made.id), { type: 'LOAD_BALANCER', gpu: { pools: ['AMPERE_48', 'NVIDIA GeForce RTX 3070'], excludedTypes: [A40] }, scaling: { type: 'REQUEST_COUNT', requestCount: 6 } });
    });

    test('run on CPUs where that is asked for, in each way of asking', async () => {
      const one = await v1({ computeType: 'CPU', cpuFlavorIds: ['cpu5c', 'cpu3g'], vcpuCount: 4, gpuTypeIds: [A40] });
      assert.partialDeepStrictEqual(one, { computeType: 'CPU', instanceIds: ['cpu5c-4-8', 'cpu3g-4-16'], gpuTypeIds: [], gpuCount: 0 });
      assert.deepEqual((await v1({ computeType: 'CPU' }))['instanceIds'], ['cpu3c-2-4', 'cpu3g-2-8', 'cpu5c-2-4', 'cpu5g-2-8']);
      const { body: smaller } = await ann.call<Endpoint>('PATCH', `/v1/endpoints/${one.id}`, { vcpuCount: 2 });
      assert.deepEqual(smaller['instanceIds'], ['cpu5c-2-4', 'cpu3g-2-8']);
      const { body: other } = await ann.call<Endpoint>('PATCH', `/v2/serverless/${one.id}`, { cpu: [{ id: 'cpu3c', vcpuCount: 8 }, { id: 'cpu3c', vcpuCount: 2 }] });
      assert.deepEqual(other['cpu'], [{ id: 'cpu3c', vcpuCount: 8, memory: 16 }, { id: 'cpu3c', vcpuCount: 2, memory: 4 }]);
      assert.partialDeepStrictEqual(await save({ name: 'cpu', templateId, instanceIds: ['cpu3g-1-4'] }), { computeType: 'CPU', instanceIds: ['cpu3g-1-4'], gpuCount: 0 });
      assert.match(await refusal({ name: 'cpu', templateId, instanceIds: ['cpu3g-4-17'] }), /cpu3g-4-16/);
    });

    test('of v1 and GraphQL follow their template, and keep it; those of v2 took a copy', async () => {
      const id = await template('followed', { env: { A: '1' } });
      const [linked, copied] = [await v1({ templateId: id }), await v2({ templateId: id, name: 'copy', env: { B: '1' }, image: undefined })];
      assert.deepEqual(copied['env'], { A: '1', B: '1' });
      await ann.call('PATCH', `/v1/templates/${id}`, { imageName: 'local/other', env: { A: '2' } });
      assert.partialDeepStrictEqual(await inV2(linked.id), { image: 'local/other', env: { A: '2' } });
      assert.equal((await inV1(linked.id))['version'], 1);
      assert.partialDeepStrictEqual(await inV2(copied.id), { image: 'local/echo', env: { A: '1', B: '1' } });
      for (const path of [`/v1/templates/${id}`, `/v2/templates/${id}`]) {
        const { status, text } = await ann.call('DELETE', path);
        assert.equal(status, 400);
        assert.match(text, /uses this template/);
      }
      const { body } = await ann.graphql('mutation { deleteTemplate(templateName: "followed") }');
      assert.match(body.errors?.[0]?.message ?? '', /uses this template/);
      assert.equal((await ann.call('DELETE', `/v1/endpoints/${linked.id}`)).status, 204);
      assert.equal((await ann.call('DELETE', `/v2/templates/${id}`)).status, 204);
      assert.equal((await inV2(copied.id))['image'], 'local/echo');
    });

    test('of v2 need only a template, which must be for endpoints', async () => {
      const { status, body } = await ann.call<Endpoint>('POST', '/v2/serverless', { templateId });
      assert.equal(status, 201);
      assert.partialDeepStrictEqual(body, { name: 'base', type: 'QUEUE', scaling: delayed, image: 'local/echo', args: 'run it', disk: 7 });
      assert.equal((await ann.call<Endpoint>('POST', '/v2/serverless', { templateId: 'berth-echo' })).body['gpu'], null, 'one for CPUs makes an endpoint on CPUs');
      const { body: pod } = await ann.call<Endpoint>('POST', '/v1/templates', { name: 'for pods', imageName: 'x' });
      assert.equal((await ann.call('POST', '/v2/serverless', { templateId: pod.id })).status, 422);
      assert.equal((await ann.call('POST', '/v2/serverless', { templateId: 'nosuchone' })).status, 404);
      assert.equal((await ann.call('PATCH', `/v2/serverless/${body.id}`, { templateId: pod.id })).status, 422);
      const other = await template('applied', { imageName: 'local/applied', env: { T: '1', U: '1' } });
      const { body: applied } = await ann.call<Endpoint>('PATCH', `/v2/serverless/${body.id}`, { templateId: other, env: { U: '2' }, disk: 9 });
      assert.partialDeepStrictEqual(applied, { name: 'base', image: 'local/applied', env: { T: '1', U: '2' }, disk: 9, args: '' });
    });

    test('change only in what is said, the same by PATCH and by the update of v1', async () => {
      const [patched, posted] = [await v1({ name: 'a', gpuTypeIds: [A40] }), await v1({ name: 'a', gpuTypeIds: [A40] })];
      const change = { name: 'b', workersMax: 5, gpuTypeIds: [RTX_4090], scalerValue: 7, flashboot: true };
      const { id: _, createdAt: __, ...one } = (await ann.call<Endpoint>('PATCH', `/v1/endpoints/${patched.id}`, change)).body;
      const { id: ___, createdAt: ____, ...other } = (await ann.call<Endpoint>('POST', `/v1/endpoints/${posted.id}/update`, change)).body;
      assert.deepEqual(one, other);
      assert.partialDeepStrictEqual(one, { ...change, workersMin: 0, idleTimeout: 5, version: 1 });
      assert.equal((await ann.call<Endpoint>('PATCH', `/v1/endpoints/${patched.id}`, { workersMin: 2, idleTimeout: 9 })).body['version'], 1, 'what takes effect in place is no release');
      assert.deepEqual((await ann.call<Endpoint>('PATCH', `/v1/endpoints/${patched.id}`, {})).body['name'], 'b');

      const { body: made } = await ann.call<Endpoint>('POST', '/v2/serverless', { ...onGpu, env: { A: '1' }, gpu: { pools: ['AMPERE_48'], excludedTypes: [A40], allowedCudaVersions: ['12.8'] } });
      const patch = async (body: object): Promise<Endpoint> => (await ann.call<Endpoint>('PATCH', `/v2/serverless/${made.id}`, body)).body;
      assert.deepEqual(await patch({}), made);
      assert.deepEqual((await patch({ gpu: { count: 2 } }))['gpu'], { pools: ['AMPERE_48'], excludedTypes: [A40], count: 2, allowedCudaVersions: ['12.8'], minCudaVersion: null });
      assert.partialDeepStrictEqual(await patch({ gpu: { pools: ['AMPERE_48', 'ADA_24'] } }), { gpu: { pools: ['AMPERE_48', 'ADA_24'], excludedTypes: [], count: 2 } });
      assert.partialDeepStrictEqual(await patch({ gpu: { allowedCudaVersions: [], minCudaVersion: '12.4' } }), { gpu: { allowedCudaVersions: [], minCudaVersion: '12.4' } });
      assert.partialDeepStrictEqual(await patch({ gpu: { minCudaVersion: '' }, env: { B: '2' }, retention: 9_000 }), { gpu: { minCudaVersion: null }, env: { B: '2' }, retention: 9_000 });
      assert.deepEqual((await patch({ retention: null, workers: { max: 1 } }))['workers'], { min: 0, max: 1, idleTimeout: 10 });
      assert.partialDeepStrictEqual(await patch({ scaling: counted }), { scaling: counted, workers: { min: 0, max: 1 } });
      assert.ok(!('idleTimeout' in (await ann.call<{ workers: object }>('GET', `/v2/serverless/${made.id}`)).body.workers));
      assert.partialDeepStrictEqual(await patch({ scaling: { type: 'QUEUE_DELAY', queueDelay: 0.5 } }), { scaling: { queueDelay: 0.5 }, workers: { idleTimeout: 10 } });
      assert.equal((await inV1(made.id))['scalerValue'], 1);
      assert.partialDeepStrictEqual(await save({ id: made.id, name: 'c', workersMax: 0 }), { name: 'c', workersMax: 0, gpuCount: 2, scalerValue: 1 });
      assert.deepEqual((await inV2(made.id))['scaling'], { type: 'QUEUE_DELAY', queueDelay: 0.5 });
    });

    test('show their workers and their template where that is asked for, in v1 and GraphQL as in v2', async () => {
      const runs = await template('staffed');
      const { id, version } = await v1({ name: 'staffed', templateId: runs, computeType: 'CPU', workersMin: 1, workersMax: 1 });
      const own = await until('its worker is ready', async () => {
        const { body } = await ann.call<{ workers: Endpoint[] }>('GET', `/v2/serverless/${id}/workers`);
        return body.workers.find(({ status }) => status === 'IDLE');
      });
      const { body: whole } = await ann.call<Endpoint>('GET', `/v1/endpoints/${id}?includeWorkers=true&includeTemplate=true`);
      assert.partialDeepStrictEqual(whole, { id, template: { id: runs, imageName: 'local/echo' } });
      assert.deepEqual(whole['workers'], [{
        id: own.id, name: 'staffed', endpointId: id, aiApiId: id, slsVersion: version, consumerUserId: ann.id, desiredStatus: 'RUNNING', lastStatusChange: 'IDLE', lastStartedAt: own['startedAt'],
        image: 'local/echo', machine: { dataCenterId: 'LOCAL-1' }, gpu: null, interruptible: false, locked: false,
      }]);
      const { body: all } = await ann.call<Endpoint[]>('GET', '/v1/endpoints?includeWorkers=true');
      assert.deepEqual(all.find((found) => found.id === id), { ...(await inV1(id)), workers: whole['workers'] });
      assert.ok(!('workers' in (await inV1(id))) && !('template' in (await inV1(id))));
      const query = `{ myself { endpoint(id: "${id}") { template { id } pods { id name imageName desiredStatus lastStatusChange lastStartedAt slsVersion endpointId gpuCount machine { dataCenterId gpuTypeId } } } } }`;
      const { body } = await ann.graphql<{ myself: { endpoint: Endpoint } }>(query);
      assert.deepEqual(body.data?.myself.endpoint, {
        template: { id: runs },
        pods: [{ id: own.id, name: 'staffed', imageName: 'local/echo', desiredStatus: 'RUNNING', lastStatusChange: 'IDLE', lastStartedAt: own['startedAt'], slsVersion: version, endpointId: id, gpuCount: own['gpuCount'], machine: { dataCenterId: 'LOCAL-1', gpuTypeId: null } }],
      });
      assert.equal((await ann.call('DELETE', `/v1/endpoints/${id}`)).status, 204);
    });

    test('are listed with all that belongs to them while some of them go', async () => {
      const going = await Promise.all(Array.from({ length: 12 }, (_, index) => save({ name: `going ${index}`, gpuIds: 'ADA_24', workersMax: 0, template: { imageName: 'local/echo', containerDiskInGb: 5 } })));
      let gone = false;
      const removing = Promise.all(going.map(({ id }) => ann.call('DELETE', `/v1/endpoints/${id}`))).finally(() => (gone = true));
      const refused: unknown[] = [];
      const look = async (path: string): Promise<void> => {
        const { status, body } = await ann.call('GET', path);
        if (status !== 200) refused.push(body);
      };
      const lookInGraphql = async (): Promise<void> => {
        const { body } = await ann.graphql('{ myself { endpoints { id template { id } pods { id } } } }');
        if (body.errors !== undefined) refused.push(body.errors);
      };
      while (!gone) await Promise.all([look('/v1/endpoints?includeTemplate=true'), look('/v1/endpoints?includeWorkers=true'), lookInGraphql()]);
      assert.deepEqual((await removing).map(({ status }) => status), going.map(() => 204));
      assert.deepEqual(refused, []);
    });

    test('go back to a release whose registry is gone without it, and are told of a volume that is', async () => {
      const registry = (await ann.call<Endpoint>('POST', '/v2/registries', { name: 'passing', username: 'u', password: 'p' })).body.id;
      const networkVolume = await volume();
      const [one, two] = [await v2({ registry }), await v2({ networkVolumes: [networkVolume] })];
      for (const { id } of [one, two]) await ann.call('PATCH', `/v2/serverless/${id}`, { image: 'local/other', networkVolumes: [] });
      assert.equal((await ann.call('DELETE', `/v2/registries/${registry}`)).status, 204);
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${networkVolume}`)).status, 204);
      const back = (id: string) => ann.call<{ detail?: string }>('POST', `/v2/serverless/${id}/releases/0/rollback`);
      assert.equal((await back(one.id)).status, 200);
      assert.partialDeepStrictEqual(await inV2(one.id), { image: 'local/echo', registry: null });
      const { status, body } = await back(two.id);
      assert.deepEqual([status, body.detail?.includes(`release 0 used network volume "${networkVolume}", which was deleted`)], [400, true], JSON.stringify(body));
      assert.equal((await inV2(two.id))['image'], 'local/other');
    });

    test('read through v1 and written back whole through GraphQL stay as they are, but for what was meant', async () => {
      const networkVolume = await volume();
      const [linked, { body: own }] = [
        await v1({ name: 'ctl', gpuTypeIds: [A40, RTX_4090], networkVolumeId: networkVolume, dataCenterIds: ['LOCAL-1'], minCudaVersion: '12.1' }),
        await ann.call<Endpoint>('POST', '/v2/serverless', { ...onGpu, scaling: { type: 'QUEUE_DELAY', queueDelay: 0.5 }, flashboot: 'PRIORITY_FLASHBOOT' }),
      ];
      for (const { id } of [linked, own]) {
        const before = { v1: await inV1(id), v2: await inV2(id) };
        const input = Object.fromEntries(Object.entries(before.v1).map(([field, value]) => [field, value ?? '']));
        await save({
          ...input, userId: undefined, env: undefined, allowedCudaVersions: '', modelReferences: ['org/model'],
          networkVolumeIds: (before.v1['networkVolumeIds'] as string[]).map((networkVolumeId) => ({ networkVolumeId })),
        });
        assert.deepEqual(await inV1(id), { ...before.v1, modelReferences: ['org/model'], version: Number(before.v1['version']) + 1 });
        assert.deepEqual(await inV2(id), before.v2);
      }
    });

    test('made with a template of their own by GraphQL take it along', async () => {
      const input = { name: 'flash -fb', template: { name: 'inline', imageName: 'local/inline', containerDiskInGb: 5, env: [{ key: 'A', value: '1' }] }, gpuIds: 'ADA_24' };
      const made = await save(input);
      assert.partialDeepStrictEqual(made, { flashBootType: 'FLASHBOOT', template: { imageName: 'local/inline', isServerless: true }, env: [{ key: 'A', value: '1' }] });
      const own = String(made['templateId']);
      assert.equal((await ann.call<Endpoint>('GET', `/v1/templates/${own}`)).body.name, 'inline');
      const listed = async (query: string): Promise<boolean> => (await ann.call<Endpoint[]>('GET', `/v1/templates${query}`)).body.some(({ id }) => id === own);
      assert.deepEqual([await listed(''), await listed('?includeEndpointBoundTemplates=true')], [false, true]);
      const { body: bound } = await ann.graphql(`{ podTemplate(id: "${own}") { boundEndpointId } }`);
      assert.deepEqual(bound.data, { podTemplate: { boundEndpointId: made.id } });
      assert.equal((await ann.call('DELETE', `/v1/templates/${own}`)).status, 400);
      await ann.graphql(`mutation { saveTemplate(input: { id: "${own}", imageName: "local/changed" }) { id } }`);
      assert.equal((await inV2(made.id))['image'], 'local/changed');
      assert.partialDeepStrictEqual(await save({ id: made.id, template: { imageName: 'local/again' } }), { templateId: own, template: { imageName: 'local/again' } });
      const before = await inGraphql(made.id);
      assert.match(await refusal({ id: made.id, networkVolumeId: 'gone', template: { imageName: 'local/refused' } }), /"gone" does not exist/);
      assert.match(await refusal({ id: made.id, template: { isServerless: false, volumeInGb: 5 } }), /volume size must be 0/);
      assert.deepEqual(await inGraphql(made.id), before);
      assert.partialDeepStrictEqual(await save({ id: made.id, gpuCount: 2, template: { imageName: 'local/last' } }), { gpuCount: 2, version: Number(before?.['version']) + 1 });

      const { body: moved } = await ann.graphql<{ updateEndpointTemplate: Endpoint }>(`mutation { updateEndpointTemplate(input: { endpointId: "${made.id}", templateId: "${templateId}" }) { id templateId } }`);
      assert.deepEqual(moved.data?.updateEndpointTemplate, { id: made.id, templateId });
      assert.equal((await ann.call('GET', `/v1/templates/${own}`)).status, 404, 'nothing else used it');
      assert.equal((await inV2(made.id))['image'], 'local/echo');
      assert.match(await refusal({ name: 'x' }), /exactly one of templateId, template and hubReleaseId/);
      assert.match(await refusal({ name: 'x', templateId, template: { imageName: 'y' } }), /exactly one of templateId, template and hubReleaseId/);
      assert.match(await refusal({ name: 'x', hubReleaseId: 'y' }), /hub release "y" not found/);
    });

    test('with a mistake are refused, with the status of the interface and a word of what is wrong', async () => {
      const [one, two] = [await volume(), await volume()];
      const shared: [fields: object, v2fields: object, words: RegExp][] = [
        [{ workersMin: 5, workersMax: 2 }, { workers: { min: 5, max: 2 } }, /workersMin .*5.*workersMax .*2/],
        [{ gpuTypeIds: ['NVIDIA Nonsense'] }, { gpu: { pools: ['NONSENSE_1'] }, cpu: undefined }, /does not exist here; available: /],
        [{ computeType: 'CPU', cpuFlavorIds: ['cpu3m'] }, { cpu: [{ id: 'cpu3m', vcpuCount: 2 }] }, /cpu3m.*available: cpu3c/],
        [{ computeType: 'CPU', vcpuCount: 3 }, { cpu: [{ id: 'cpu3c', vcpuCount: 3 }] }, /power of two/],
        [{ dataCenterIds: ['MOON-1'] }, { dataCenterIds: ['MOON-1'] }, /"MOON-1" does not exist here; available: LOCAL-1/],
        [{ networkVolumeId: 'nosuchone' }, { networkVolumes: ['nosuchone'] }, /network volume "nosuchone" does not exist/],
        [{ networkVolumeIds: [one, two] }, { networkVolumes: [one, two] }, /both in LOCAL-1/],
        [{ executionTimeoutMs: 4_999 }, { timeout: 4_999 }, /5000 to 604800000, got 4999/],
      ];
      for (const [fields, v2fields, words] of shared) {
        for (const { status, text } of [await ann.call('POST', '/v1/endpoints', { templateId, ...fields }), await ann.call('POST', '/v2/serverless', { ...small, ...v2fields })]) {
          assert.equal(status, 400, text);
          assert.match(text.replaceAll('\\"', '"'), words);
        }
      }
      const inV1Only: [object, RegExp][] = [
        [{ templateId: undefined }, /missing property 'templateId'/],
        [{ templateId: 'nosuchone' }, /template .* does not exist/],
        [{ name: 'x'.repeat(192) }, /191/],
        [{ idleTimeout: 0 }, /at least 1/],
        [{ idleTimeout: 3601 }, /at most 3600/],
        [{ scalerValue: 0 }, /at least 1/],
        [{ scalerType: 'OTHER' }, /QUEUE_DELAY, REQUEST_COUNT/],
        [{ gpuCount: 0 }, /at least 1/],
        [{ workersMax: -1 }, /at least 0/],
        [{ allowedCudaVersions: ['12'] }, /major\.minor/],
        [{ surprise: true }, /^\{"message":"Extra input keys provided in request body/],
      ];
      for (const [fields, words] of inV1Only) {
        const { status, text } = await ann.call('POST', '/v1/endpoints', { templateId, ...fields });
        assert.equal(status, 400, text);
        assert.match(text, words);
      }
      const inV2Only: [status: number, object, RegExp][] = [
        [422, { name: undefined }, /missing property 'name'/],
        [422, { type: undefined, scaling: undefined }, /missing property 'type'.*missing property 'scaling'/],
        [422, { image: undefined }, /missing property 'image'/],
        [422, { name: 'x'.repeat(192) }, /191/],
        [422, { surprise: true }, /additional properties 'surprise' not allowed/],
        [400, { cpu: undefined }, /exactly one of gpu and cpu/],
        [400, { gpu: { pools: ['ADA_24'] } }, /gpu and cpu exclude each other/],
        [422, { type: 'LOAD_BALANCER' }, /\$\.scaling\.type: must be REQUEST_COUNT/],
        [422, { scaling: counted, workers: { idleTimeout: 10 } }, /\$\.workers\.idleTimeout: must not be given/],
        [422, { scaling: { type: 'QUEUE_DELAY', queueDelay: 0.4 } }, /at least 0\.5/],
        [422, { scaling: { type: 'REQUEST_COUNT' } }, /missing property 'requestCount'/],
        [422, { workers: { idleTimeout: 3601 } }, /at most 3600/],
        [422, { cpu: [] }, /at least 1 item/],
        [422, { cpu: [{ id: 'cpu3c', vcpuCount: 1 }] }, /at least 2/],
        [422, { cpu: [{ id: 'cpu3c', vcpuCount: 2 }, { id: 'cpu3c', vcpuCount: 2 }] }, /are equal/],
        [422, { cpu: undefined, gpu: { pools: [] } }, /at least 1 item/],
        [400, { cpu: undefined, gpu: { pools: [A40] } }, /GPU pool .* does not exist/],
        [400, { cpu: undefined, gpu: { pools: ['ADA_24'], excludedTypes: [A40] } }, /in none of the pools/],
        [400, { cpu: undefined, gpu: { pools: ['ADA_24'], excludedTypes: [RTX_4090] } }, /leave none/],
        [400, { cpu: undefined, gpu: { pools: ['ADA_24'], allowedCudaVersions: ['12.8'], minCudaVersion: '12.1' } }, /exclude each other/],
        [422, { cpu: undefined, gpu: { pools: ['ADA_24'], minCudaVersion: '12' } }, /must match/],
        [400, { registry: 'nosuchone' }, /registry .* does not exist/],
        [400, { ports: ['http'] }, /port/],
        [422, { jobTtl: 1 }, /at least 10000/],
        [422, { retention: 1 }, /at least 1000/],
        [422, { maxRetries: -1 }, /at least 0/],
      ];
      for (const [wanted, fields, words] of inV2Only) {
        const { status, text } = await ann.call('POST', '/v2/serverless', { ...small, ...fields });
        assert.equal(status, wanted, text);
        assert.match(text, words);
      }
      assert.match(await refusal({ name: 'x', templateId, workersMin: 5, workersMax: 2 }), /workersMin .*5.*workersMax .*2/);
      assert.match(await refusal({ name: 'x', templateId, scalerType: 'OTHER' }), /QUEUE_DELAY, REQUEST_COUNT/);
      assert.match(await refusal({ name: 'x', templateId, type: 'LB', scalerType: 'QUEUE_DELAY' }), /REQUEST_COUNT only/);
      assert.match(await refusal({ id: 'nosuchone', name: 'x' }), /not found/);
    });

    test('refuse a change that breaks a rule, and stay as they were', async () => {
      const [gpu, cpu, balanced] = [(await ann.call<Endpoint>('POST', '/v2/serverless', onGpu)).body, await v2(), await v2({ type: 'LOAD_BALANCER', scaling: counted, workers: { idleTimeout: 20 } })];
      const cases: [number, Endpoint, object, RegExp][] = [
        [400, gpu, { cpu: [{ id: 'cpu3c', vcpuCount: 2 }] }, /GPU endpoint/],
        [400, cpu, { gpu: { pools: ['ADA_24'] } }, /CPU endpoint/],
        [422, gpu, { gpu: { excludedTypes: [A40] } }, /missing property 'pools'/],
        [422, gpu, { type: 'QUEUE' }, /additional properties 'type'/],
        [400, gpu, { workers: { min: 4 } }, /workersMin .*4.*workersMax .*3/],
        [422, gpu, { scaling: counted, workers: { idleTimeout: 5 } }, /idleTimeout/],
        [400, balanced, { scaling: delayed }, /REQUEST_COUNT only/],
        [404, { id: 'nosuchone', name: '' }, { name: 'x' }, /not found/],
      ];
      for (const [wanted, { id }, body, words] of cases) {
        const { status, text } = await ann.call('PATCH', `/v2/serverless/${id}`, body);
        assert.equal(status, wanted, text);
        assert.match(text, words);
      }
      assert.deepEqual([await inV2(gpu.id), await inV2(cpu.id), await inV2(balanced.id)], [gpu, cpu, balanced]);
      assert.deepEqual((await ann.call<Endpoint>('PATCH', `/v1/endpoints/${cpu.id}`, { gpuTypeIds: [A40] })).body['gpuTypeIds'], [], 'v1 ignores what is said of the other kind');
    });

    test('are deleted through each interface, and gone in all; their volumes are free then', async () => {
      const networkVolume = await volume();
      const made = [await v1({ networkVolumeId: networkVolume }), await v2(), await save({ name: 'x', templateId, workersMin: 1, workersMax: 1 })];
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${networkVolume}`)).status, 400);
      assert.equal((await ann.call('DELETE', `/v1/networkvolumes/${networkVolume}`)).status, 400);
      assert.equal((await ann.call('DELETE', `/v1/endpoints/${made[0]?.id}`)).status, 204);
      assert.equal((await ann.call('DELETE', `/v2/serverless/${made[1]?.id}`)).status, 204);
      const { text } = await ann.graphql(`mutation { deleteEndpoint(id: "${made[2]?.id}") }`);
      assert.equal(text, '{"data":{"deleteEndpoint":null}}');
      for (const { id } of made) {
        assert.deepEqual([(await ann.call('GET', `/v1/endpoints/${id}`)).status, (await ann.call('GET', `/v2/serverless/${id}`)).status, await inGraphql(id)], [404, 404, null]);
        assert.deepEqual([(await ann.call('DELETE', `/v1/endpoints/${id}`)).status, (await ann.call('DELETE', `/v2/serverless/${id}`)).status], [404, 404]);
      }
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${networkVolume}`)).status, 204);
      assert.deepEqual((await auditLog(ann)).filter(({ resource, action }) => resource === 'endpoint' && action === 'delete').length >= 3, true);
    });

    test('belong to one account, and are paged newest first', async () => {
      const bob = await stage.account('bob');
      const { id } = await v2();
      for (const path of [`/v1/endpoints/${id}`, `/v2/serverless/${id}`]) {
        assert.deepEqual([(await bob.call('GET', path)).status, (await bob.call('PATCH', path, { name: 'mine' })).status, (await bob.call('DELETE', path)).status], [404, 404, 404]);
      }
      assert.deepEqual((await bob.call('GET', '/v1/endpoints')).body, []);
      const { body: all } = await ann.call<Page>('GET', '/v2/serverless');
      const seen: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const { body: page }: { body: Page } = await ann.call<Page>('GET', `/v2/serverless?limit=5${cursor === '' ? '' : `&cursor=${cursor}`}`);
        seen.push(...page.endpoints.map((found) => found.id));
        cursor = page.pagination.nextCursor;
      }
      assert.deepEqual(seen, all.endpoints.map((found) => found.id));
      assert.equal((await ann.call('GET', '/v2/serverless?cursor=nonsense')).status, 422);
    });
  });
}
