import assert from 'node:assert/strict';
import { SkippedError } from './skipped-error.ts';
import type { ConformanceCheck } from './conformance-check.ts';
import type { Resource } from './deployment.ts';

const group = 'GraphQL';

interface Failure {
  data?: unknown;
  errors: { message: string; extensions?: { code: string } }[];
}

export const graphqlChecks: ConformanceCheck[] = [
  {
    group,
    name: 'a success has no errors key, a failure is 200 with a message, a bad key 401',
    run: async (site) => {
      const { myself } = await site.query('query { myself { id pubKey } }');
      assert.equal(typeof myself?.id, 'string');
      const failure = await site.expectStatus<Failure>('graphql', 'POST', '', 200, {
        query: 'query { noSuchField }',
      });
      assert.equal(typeof failure.errors[0]?.message, 'string');
      await site.expectStatus(
        'graphql',
        'POST',
        '',
        401,
        { query: 'query { myself { id } }' },
        { authorization: 'Bearer rpa_wrong' },
      );
    },
  },
  {
    group,
    name: 'the catalog is open to everyone; myself is null for a stranger',
    run: async (site) => {
      const stranger = { authorization: '' };
      const { data } = await site.expectStatus<{
        data: { gpuTypes: Resource[]; cpuFlavors: Resource[]; dataCenters: Resource[] };
      }>(
        'graphql',
        'POST',
        '',
        200,
        {
          query: `{ gpuTypes { id displayName memoryInGb lowestPrice(input: {gpuCount: 1}) { stockStatus }
              } cpuFlavors { id } dataCenters { id name listed } }`,
        },
        stranger,
      );
      assert.ok(data.gpuTypes.length > 0 && data.cpuFlavors.length > 0 && data.dataCenters.length > 0);
      assert.deepEqual(
        await site.expectStatus('graphql', 'POST', '', 200, { query: '{ myself { id } }' }, stranger),
        {
          data: { myself: null },
        },
      );
    },
  },
  {
    group,
    name: 'the key may stand in the address',
    run: async (site) => {
      const { data } = await site.expectStatus<{ data: { myself: Resource } }>(
        'graphql',
        'POST',
        `?api_key=${encodeURIComponent(site.options.key)}`,
        200,
        { query: '{ myself { id } }' },
        { authorization: '' },
      );
      assert.equal(typeof data.myself.id, 'string');
    },
  },
  {
    group,
    name: 'variables that are not declared, fields that are not known and empty texts are forgiven',
    run: async (site) => {
      const name = site.uniqueName();
      const input = {
        name,
        imageName: 'a/b:1',
        containerDiskInGb: 5,
        volumeInGb: 0,
        containerRegistryAuthId: '',
        noSuchField: 1,
      };
      const { saveTemplate } = await site.query(
        'mutation M($input: SaveTemplateInput) { saveTemplate(input: $input) { id name ports env { key value } } }',
        { input, another: true },
      );
      site.onCleanup(() =>
        site.query('mutation M($name: String!) { deleteTemplate(templateName: $name) }', { name }),
      );
      assert.equal(saveTemplate?.['name'], name);
    },
  },
  {
    group,
    name: 'templates are deleted by name, and the answer is null',
    run: async (site) => {
      const name = site.uniqueName();
      await site.query(
        `mutation { saveTemplate(input: {name: "${name}", imageName: "a/b:1", dockerArgs: "",
          containerDiskInGb: 5, volumeInGb: 0, env: [{key: "A", value: "b"}]}) { id } }`,
      );
      assert.deepEqual(await site.query(`mutation { deleteTemplate(templateName: "${name}") }`), {
        deleteTemplate: null,
      });
    },
  },
  {
    group,
    name: 'endpoints: made, changed in one field, deleted',
    run: async (site) => {
      const template = { name: site.uniqueName(), imageName: site.options.image };
      const save = `mutation M($input: EndpointInput!) { saveEndpoint(input: $input) { id name workersMin
          workersMax idleTimeout scalerType scalerValue instanceIds type templateId minCudaVersion } }`;
      const { saveEndpoint: made } = await site.query(save, {
        input: {
          name: site.uniqueName(),
          template,
          instanceIds: ['cpu3c-2-4'],
          workersMin: 0,
          workersMax: 0,
          idleTimeout: 30,
          scalerType: 'QUEUE_DELAY',
          scalerValue: 7,
          flashBootType: '',
        },
      });
      assert.ok(made !== undefined);
      site.onCleanup(() =>
        site.query('mutation M($id: String!) { deleteEndpoint(id: $id) }', { id: made.id }),
      );
      assert.deepEqual(
        [made['type'], made['instanceIds'], made['idleTimeout'], made['scalerValue'], made['minCudaVersion']],
        ['QB', ['cpu3c-2-4'], 30, 7, null],
      );
      const { saveEndpoint: changed } = await site.query(save, {
        input: { id: made.id, name: 'renamed', workersMax: 0 },
      });
      assert.deepEqual([changed?.['name'], changed?.['idleTimeout']], ['renamed', 30]);
      const { myself } = await site.query<{ myself: { endpoints: Resource[] } }>(
        '{ myself { endpoints { id name pods { desiredStatus } } } }',
      );
      assert.deepEqual(myself.endpoints.find(({ id }) => id === made.id)?.['pods'], []);
      assert.deepEqual(
        await site.query('mutation M($id: String!) { deleteEndpoint(id: $id) }', { id: made.id }),
        { deleteEndpoint: null },
      );
    },
  },
  {
    group,
    name: 'what is gone is told in the words that clients look for',
    run: async (site) => {
      const said = async (query: string): Promise<string> =>
        (await site.expectStatus<Failure>('graphql', 'POST', '', 200, { query })).errors[0]?.message ?? '';
      assert.equal(
        await said('mutation { podTerminate(input: {podId: "nosuchpod"}) }'),
        'pod not found to terminate',
      );
      assert.match(
        await said('mutation { deleteNetworkVolume(input: {id: "nosuchvolume"}) }'),
        /Tried to delete nonexistent network volume/,
      );
      assert.match(await said('{ flashAppByName(flashAppName: "no such app") { id } }'), /app not found/);
    },
  },
  {
    group,
    name: 'network volumes, registries and secrets are made, changed and removed',
    run: async (site) => {
      const dataCenterId = await site.dataCenter();
      const { createNetworkVolume: volume } = await site.query(
        `mutation M($input: CreateNetworkVolumeInput!) { createNetworkVolume(input: $input) { id name
          size dataCenterId dataCenter { id name } } }`,
        { input: { name: site.uniqueName(), size: 10, dataCenterId } },
      );
      site.onCleanup(() =>
        site.query('mutation M($input: DeleteNetworkVolumeInput!) { deleteNetworkVolume(input: $input) }', {
          input: { id: volume?.id },
        }),
      );
      const { updateNetworkVolume } = await site.query(
        'mutation M($input: UpdateNetworkVolumeInput!) { updateNetworkVolume(input: $input) { size } }',
        { input: { id: volume?.id, size: 20 } },
      );
      assert.equal(updateNetworkVolume?.['size'], 20);
      const { saveRegistryAuth } = await site.query(
        `mutation { saveRegistryAuth(input: {name: "${site.uniqueName()}", username: "u", password:
          "p"}) { id name } }`,
      );
      assert.deepEqual(
        await site.query(`mutation { deleteRegistryAuth(registryAuthId: "${saveRegistryAuth?.id}") }`),
        { deleteRegistryAuth: null },
      );
      const name = site.uniqueName().replaceAll('-', '_');
      const { secretCreate } = await site.query(
        'mutation M($input: SecretCreateInput!) { secretCreate(input: $input) { id name } }',
        { input: { name, value: 'v', description: 'd' } },
      );
      assert.deepEqual(
        await site.query('mutation M($id: ID!) { secretDelete(id: $id) }', { id: secretCreate?.id }),
        { secretDelete: null },
      );
    },
  },
  {
    group,
    name: 'pods: deployed, stopped, resumed, terminated',
    run: async (site) => {
      if (!site.options.pods) throw new SkippedError('--pods was not given: a pod may cost money');
      const { deployCpuPod: pod } = await site.query(
        `mutation M($input: DeployCpuPodInput!) { deployCpuPod(input: $input) { id imageName env
          machineId desiredStatus machine { podHostId } } }`,
        {
          input: {
            instanceId: 'cpu3c-2-4',
            cloudType: 'SECURE',
            name: site.uniqueName(),
            imageName: site.options.image,
            dockerArgs: 'sleep 600',
            containerDiskInGb: 5,
            env: [{ key: 'A', value: 'b' }],
            ports: '8888/http',
          },
        },
      );
      assert.ok(pod !== undefined);
      site.onCleanup(() =>
        site.query('mutation M($input: PodTerminateInput!) { podTerminate(input: $input) }', {
          input: { podId: pod.id },
        }),
      );
      assert.deepEqual([pod['env'], pod['desiredStatus']], [['A=b'], 'RUNNING']);
      await site.waitFor(
        'its container runs',
        async () =>
          (
            await site.query<{ pod: { runtime: unknown } }>(
              `query Q($input: PodFilter) { pod(input: $input) { runtime { uptimeInSeconds ports { ip
                isIpPublic privatePort publicPort type } } } }`,
              { input: { podId: pod.id } },
            )
          ).pod.runtime !== null,
      );
      const { podStop } = await site.query(
        'mutation M($input: PodStopInput!) { podStop(input: $input) { id desiredStatus } }',
        { input: { podId: pod.id } },
      );
      assert.equal(podStop?.['desiredStatus'], 'EXITED');
      const { podResume } = await site.query(
        'mutation M($input: PodResumeInput!) { podResume(input: $input) { id desiredStatus } }',
        { input: { podId: pod.id, gpuCount: 0 } },
      );
      assert.equal(podResume?.['desiredStatus'], 'RUNNING');
      assert.deepEqual(
        await site.query('mutation M($input: PodTerminateInput!) { podTerminate(input: $input) }', {
          input: { podId: pod.id },
        }),
        { podTerminate: null },
      );
    },
  },
];
