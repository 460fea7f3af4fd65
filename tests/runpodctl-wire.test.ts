import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { SLEEP_COMMAND } from '../packages/testing/src/pod-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

type Decoded = 'text' | 'whole' | 'number' | 'flag' | 'texts' | 'map' | 'object' | 'list';

/**
 * A decoder of Go: a value of another type than its field ends the program. What is absent or null is left as
 * it is.
 */
const DECODERS: Record<Decoded, (value: unknown) => boolean> = {
  text: (value) => typeof value === 'string',
  whole: (value) => Number.isInteger(value),
  number: (value) => typeof value === 'number',
  flag: (value) => typeof value === 'boolean',
  texts: (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  map: (value) => isObject(value) && Object.values(value).every((item) => typeof item === 'string'),
  object: isObject,
  list: (value) => Array.isArray(value),
};

const POD: Record<string, Decoded> = {
  id: 'text',
  name: 'text',
  desiredStatus: 'text',
  imageName: 'text',
  gpuTypeId: 'text',
  ports: 'texts',
  gpuCount: 'whole',
  volumeInGb: 'whole',
  containerDiskInGb: 'whole',
  memoryInGb: 'whole',
  vcpuCount: 'whole',
  costPerHr: 'number',
  env: 'map',
  machine: 'object',
  runtime: 'object',
};
const ENDPOINT: Record<string, Decoded> = {
  id: 'text',
  name: 'text',
  templateId: 'text',
  gpuIds: 'text',
  instanceIds: 'texts',
  networkVolumeId: 'text',
  networkVolumeIds: 'list',
  locations: 'text',
  idleTimeout: 'whole',
  scalerType: 'text',
  scalerValue: 'whole',
  workersMin: 'whole',
  workersMax: 'whole',
  gpuCount: 'whole',
  minCudaVersion: 'text',
  flashboot: 'flag',
  flashBootType: 'text',
  computeType: 'text',
  executionTimeoutMs: 'whole',
  modelReferences: 'texts',
  template: 'object',
  workers: 'list',
};
const TEMPLATE: Record<string, Decoded> = {
  id: 'text',
  name: 'text',
  imageName: 'text',
  isServerless: 'flag',
  ports: 'texts',
  dockerEntrypoint: 'texts',
  dockerStartCmd: 'texts',
  env: 'map',
  containerDiskInGb: 'whole',
  volumeInGb: 'whole',
  volumeMountPath: 'text',
  readme: 'text',
  containerRegistryAuthId: 'text',
};

const HEADERS = { 'user-agent': 'runpod-cli/2.10.0 (linux; amd64)' };
const GPU = 'NVIDIA GeForce RTX 4090';

interface Thing extends Record<string, unknown> {
  id: string;
}

/**
 * What runpodctl sends and how it reads the answers, spoken by hand: for machines where the program itself
 * cannot be had. `clients/go/` runs the program.
 */
describe('runpodctl, by what it sends', () => {
  const fixture = serverFixture('sqlite');
  let client: TestAccount;
  before(async () => {
    client = await fixture.createAccount('runpodctl');
  });

  /** Any 2xx is success; the body is decoded where there is one. */
  const send = async <T = Thing>(method: string, path: string, body?: unknown): Promise<T> => {
    const {
      status,
      text,
      body: answer,
    } = await client.call<T>(method, path, body, { 'content-type': 'application/json', ...HEADERS });
    assert.ok(status >= 200 && status < 300, `${method} ${path}: ${status} ${text}`);
    return answer;
  };
  const decode = (thing: Record<string, unknown>, fields: Record<string, Decoded>): void => {
    for (const [name, kind] of Object.entries(fields)) {
      const value = thing[name];
      if (value !== undefined && value !== null)
        assert.ok(DECODERS[kind](value), `${name} is ${JSON.stringify(value)}, and ${kind} is what it reads`);
    }
  };
  const runs = (id: string): Promise<unknown> =>
    waitFor(
      `pod ${id} runs`,
      async () => (await client.call('GET', `/v2/pods/${id}`)).body['status'] === 'RUNNING',
    );

  test('a CPU pod over REST v1, with two keys that the interface does not have', async () => {
    const template = await send('POST', '/v1/templates', {
      name: 'stays',
      imageName: 'local/shell',
      dockerStartCmd: SLEEP_COMMAND,
    });
    const pod = await send('POST', '/v1/pods', {
      name: 'ctl',
      templateId: template.id,
      imageName: 'local/shell',
      computeType: 'CPU',
      containerDiskInGb: 20,
      volumeMountPath: '/workspace',
      ports: ['8888/http', '22/tcp'],
      env: { A: 'b' },
      cloudType: 'SECURE',
      minCudaVersion: '12.0',
      dockerArgs: 'sleep 1000',
    });
    decode(pod, POD);
    assert.deepEqual([pod['imageName'], pod['desiredStatus']], ['local/shell', 'RUNNING']);
    const listed = await send<Thing[]>(
      'GET',
      `/v1/pods?computeType=CPU&name=ctl&dataCenterId=LOCAL-1&dataCenterId=EU-RO-1`,
    );
    assert.deepEqual(
      listed.map(({ id }) => id),
      [pod.id],
    );
    listed.forEach((one) => decode(one, POD));
    await runs(pod.id);
    const shown = await send('GET', `/v1/pods/${pod.id}?includeMachine=true&includeNetworkVolume=true`);
    decode(shown, POD);
    decode(
      await send('PATCH', `/v1/pods/${pod.id}`, {
        name: 'renamed',
        env: { A: 'b', C: 'd' },
        ports: ['8888/http'],
      }),
      POD,
    );
    for (const action of ['stop', 'start', 'restart', 'reset']) {
      if (action === 'restart' || action === 'reset') await runs(pod.id);
      const answer = await send('POST', `/v1/pods/${pod.id}/${action}`);
      decode(answer, POD);
      assert.equal(answer.id, pod.id, `${action} answers the pod`);
    }
    await send('DELETE', `/v1/pods/${pod.id}`);
  });

  test('an endpoint is read over REST v1 and written back whole over GraphQL', async () => {
    const template = await send('POST', '/v1/templates', {
      name: 'worker',
      imageName: 'local/echo',
      isServerless: true,
      containerDiskInGb: 20,
      env: {},
      ports: [],
    });
    decode(template, TEMPLATE);
    const create =
      'mutation SaveEndpoint($input: EndpointInput!) { saveEndpoint(input: $input) { id name gpuIds ' +
      'idleTimeout locations scalerType scalerValue templateId workersMax workersMin } }';
    const { body } = await client.graphql<{ saveEndpoint: Thing }>(create, {
      input: {
        name: 'ctl',
        templateId: template.id,
        gpuIds: 'ADA_24',
        gpuCount: 1,
        workersMin: 0,
        workersMax: 2,
        idleTimeout: 7,
        scalerType: 'QUEUE_DELAY',
        scalerValue: 3,
        flashBootType: 'FLASHBOOT',
        networkVolumeId: '',
        locations: '',
      },
    });
    const id = body.data?.saveEndpoint.id ?? '';
    const before = await send('GET', `/v1/endpoints/${id}?includeTemplate=true&includeWorkers=true`);
    decode(before, ENDPOINT);
    const text = (name: string): unknown => before[name] ?? '';
    const written = await client.graphql(create, {
      input: {
        id,
        name: text('name'),
        templateId: text('templateId'),
        gpuIds: text('gpuIds'),
        gpuCount: before['gpuCount'],
        networkVolumeId: text('networkVolumeId'),
        networkVolumeIds: before['networkVolumeIds'],
        locations: text('locations'),
        idleTimeout: before['idleTimeout'],
        scalerType: text('scalerType'),
        scalerValue: before['scalerValue'],
        workersMin: before['workersMin'],
        workersMax: before['workersMax'],
        flashBootType: '',
        minCudaVersion: text('minCudaVersion'),
        executionTimeoutMs: before['executionTimeoutMs'],
        instanceIds: before['instanceIds'],
        modelReferences: ['https://example.com/model'],
      },
    });
    assert.equal(written.body.errors, undefined, written.text);
    const after = await send('GET', `/v1/endpoints/${id}?includeTemplate=true&includeWorkers=true`);
    assert.deepEqual(
      { ...after, modelReferences: [], version: 0 },
      { ...before, modelReferences: [], version: 0 },
    );
    assert.deepEqual(after['modelReferences'], ['https://example.com/model']);
    decode(
      await send('PATCH', `/v1/endpoints/${id}`, {
        name: 'renamed',
        workersMax: 1,
        idleTimeout: 30,
        scalerType: 'REQUEST_COUNT',
        scalerValue: 2,
        flashboot: false,
      }),
      ENDPOINT,
    );
    (await send<Thing[]>('GET', '/v1/endpoints?includeTemplate=true')).forEach((one) =>
      decode(one, ENDPOINT),
    );
    await send('DELETE', `/v1/endpoints/${id}`);
  });

  test('templates, volumes and registries are bare arrays and bare objects', async () => {
    const registry = await send('POST', '/v1/containerregistryauth', {
      name: 'ctl',
      username: 'u',
      password: 'p',
    });
    const template = await send('POST', '/v1/templates', {
      name: 'ctl',
      imageName: 'a:1',
      containerRegistryAuthId: registry.id,
      dockerEntrypoint: ['a'],
      dockerStartCmd: ['b'],
      readme: 'r',
      volumeInGb: 0,
      volumeMountPath: '/workspace',
    });
    decode(template, TEMPLATE);
    assert.equal(template['containerRegistryAuthId'], registry.id);
    const cleared = await send('PATCH', `/v1/templates/${template.id}`, { containerRegistryAuthId: '' });
    assert.ok(
      [null, '', undefined].includes(cleared['containerRegistryAuthId'] as string),
      'an empty text clears it',
    );
    const volume = await send('POST', '/v1/networkvolumes', {
      name: 'ctl',
      size: 10,
      dataCenterId: 'LOCAL-1',
    });
    await send('PATCH', `/v1/networkvolumes/${volume.id}`, { size: 11 });
    for (const path of [
      '/v1/templates?includePublicTemplates=true&includeRunpodTemplates=true',
      '/v1/networkvolumes',
      '/v1/containerregistryauth',
    ])
      assert.ok(Array.isArray(await send('GET', path)), path);
    for (const path of [
      `/v1/templates/${template.id}`,
      `/v1/networkvolumes/${volume.id}`,
      `/v1/containerregistryauth/${registry.id}`,
    ])
      await send('DELETE', path);
  });

  test('what newer releases ask of REST v2', async () => {
    const { pods } = await send<{ pods: Thing[]; pagination: { nextCursor: string | null } }>(
      'GET',
      '/v2/pods?limit=100',
    );
    assert.deepEqual(pods, []);
    const pod = await send('POST', '/v2/pods', {
      name: 'ctl',
      image: 'local/shell',
      cmd: SLEEP_COMMAND,
      entrypoint: [],
      gpu: { id: GPU, count: 1 },
      cloud: 'SECURE',
      disk: 20,
      ports: ['22/tcp'],
      env: {},
    });
    decode(pod['gpu'] as Record<string, unknown>, {
      id: 'text',
      count: 'whole',
      vcpuCount: 'whole',
      memory: 'whole',
    });
    await runs(pod.id);
    await client.call('PUT', '/v2/account/ssh-keys', { keys: ['ssh-ed25519 AAAA ctl'] });
    assert.deepEqual((await send<{ keys: string[] }>('GET', '/v2/account/ssh-keys')).keys, [
      'ssh-ed25519 AAAA ctl',
    ]);
    for (const path of [
      '/v2/catalog/cpus?include=AVAILABILITY&product=POD&vcpuCount=2',
      '/v2/catalog/gpus?include=AVAILABILITY&product=POD',
      '/v2/catalog/gpus?include=AVAILABILITY&product=POD&countryCodes=RO',
      '/v2/catalog/datacenters?compliance=GDPR',
    ])
      await send('GET', path);
    const firstLine = await logLine(pod.id);
    assert.ok(firstLine.id !== '' && (JSON.parse(firstLine.data) as { source: string }).source !== '');
    const next = await logLine(pod.id, firstLine.id);
    assert.notEqual(next.id, firstLine.id);
    await send('DELETE', `/v2/pods/${pod.id}`);
  });

  test('get cloud shows GPU types with memory and vCPUs, for as many GPUs as were asked for', async () => {
    const { data } = await send<{ data: { gpuTypes: { lowestPrice: Record<string, unknown> }[] } }>(
      'POST',
      '/graphql',
      {
        query:
          'query ($input: GpuLowestPriceInput!) { gpuTypes { lowestPrice(input: $input) { gpuTypeId ' +
          'minMemory minVcpu } } }',
        variables: { input: { gpuCount: 2, secureCloud: null } },
      },
    );
    const offered = data.gpuTypes
      .map(({ lowestPrice }) => lowestPrice)
      .find(({ minMemory }) => minMemory !== null);
    assert.deepEqual([offered?.['minMemory'], offered?.['minVcpu']], [32, 8]);
  });

  test('create pod of version 1 without a GPU: an empty type and a count of 0', async () => {
    const { data } = await send<{ data: { podFindAndDeployOnDemand: Thing } }>('POST', '/graphql', {
      query:
        'mutation ($input: PodFindAndDeployOnDemandInput!) { podFindAndDeployOnDemand(input: $input) { id } }',
      variables: {
        input: { name: 'cpu', imageName: 'local/shell', gpuTypeId: '', gpuCount: 0, volumeInGb: 0 },
      },
    });
    const { id } = data.podFindAndDeployOnDemand;
    assert.equal((await send<{ gpu?: unknown }>('GET', `/v2/pods/${id}`)).gpu ?? null, null);
    await send('DELETE', `/v2/pods/${id}`);
  });

  test('model add without an owner: the account is the owner', async () => {
    const { data } = await send<{ data: { addModelToRepo: { model: { owner: string } } } }>(
      'POST',
      '/graphql',
      {
        query: 'mutation { addModelToRepo(input: {name: "tiny"}) { model { owner } } }',
      },
    );
    assert.notEqual(data.addModelToRepo.model.owner, '');
  });

  /** Reads its log as it does: the type must be right, and only these two kinds of line count. */
  async function logLine(podId: string, lastEventId?: string): Promise<{ id: string; data: string }> {
    const response = await fetch(`${fixture.server.url}/v2/pods/${podId}/logs?tail=100`, {
      headers: {
        authorization: `Bearer ${client.key}`,
        accept: 'text/event-stream',
        ...HEADERS,
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
    });
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      const [, id, data] = /^id: ?(.*)\ndata: ?(.*)\n\n/m.exec(text) ?? [];
      if (id !== undefined && data !== undefined) return { id, data };
    }
    throw new Error(`no line in ${text}`);
  }
});

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
