import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/**
 * What clients send over GraphQL, with all the fields that any of them selects. A field that is
 * not here is asked by none; one that is must be answered, and with what is true.
 */
const USER =
  'id email authId clientBalance currentSpendPerHr spendLimit notifyPodsStale notifyPodsGeneral ' +
  'notifyLowBalance pubKey';
const RUNTIME =
  'runtime { uptimeInSeconds ports { ip isIpPublic privatePort publicPort type } gpus { id ' +
  'gpuUtilPercent memoryUtilPercent } container { cpuPercent memoryPercent } }';
const POD = `id name imageName desiredStatus costPerHr containerDiskInGb volumeInGb volumeMountPath gpuCount
  vcpuCount memoryInGb dockerArgs dockerId env podType port ports machineId
  lastStatusChange uptimeSeconds containerRegistryAuthId networkVolumeId clusterIp lastStartedAt
  latestTelemetry { state time averageGpuMetrics { percentUtilization } individualGpuMetrics { id } }
  machine { podHostId gpuDisplayName location gpuTypeId gpuType { id } cpuTypeId cpuType { displayName }
  vcpuTotal memoryTotal gpuAvailable } ${RUNTIME}`;
const ENDPOINT = `id name aiKey gpuIds gpuCount idleTimeout locations networkVolumeId networkVolumeIds {
  networkVolumeId dataCenterId } scalerType scalerValue templateId type userId version
  workersMin workersMax workersStandby env { key value } createdAt networkVolume { id dataCenterId }
  allowedCudaVersions minCudaVersion executionTimeoutMs flashBootType instanceIds compliance
  modelReferences pods { desiredStatus } template { id imageName } hubReleaseId workerState(input: {
  granularity: LIVE }) { time ready running }`;
const TEMPLATE = `id name imageName dockerArgs env { key value } ports volumeMountPath volumeInGb
  containerDiskInGb containerRegistryAuthId startJupyter startSsh startScript isServerless isPublic
  readme advancedStart category isRunpod portsConfig { port name }`;
const GPU_TYPE = `id displayName manufacturer memoryInGb cudaCores secureCloud communityCloud securePrice
  communityPrice secureSpotPrice communitySpotPrice clusterPrice oneMonthPrice threeMonthPrice
  sixMonthPrice oneWeekPrice maxGpuCount maxGpuCountCommunityCloud maxGpuCountSecureCloud minPodGpuCount
  nodeGroupDatacenters { id }
  lowestPrice(input: $price) { gpuName gpuTypeId minimumBidPrice uninterruptablePrice minMemory minVcpu
  stockStatus compliance countryCode maxUnreservedGpuCount availableGpuCounts gpuTypeCudaVersions {
  cudaVersion availability } }`;
const LISTING =
  'id title description category type language tags repoId repoName repoOwner stars views deploys ' +
  'createdAt updatedAt listedRelease { id name tagName config readme createdAt build { id imageName } }';

const GPU = 'NVIDIA GeForce RTX 4090';
const STAYS = 'sleep 1000';

describe('the documents that clients send', () => {
  const fixture = serverFixture('sqlite');
  let client: ApiClient;
  /** The request id of every mutation that was sent. */
  const mutations = new Map<string, string>();
  const ask = async <T = Record<string, Record<string, unknown>>>(
    query: string,
    variables: Record<string, unknown> = {},
  ): Promise<T> => {
    const { status, body, text, headers } = await client.graphql<T>(query, variables);
    assert.equal(status, 200, text);
    if (query.startsWith('mutation')) mutations.set(query, headers.get('x-request-id') ?? '');
    assert.ok(!text.includes('"errors"'), `${query}: ${text}`);
    return body.data as T;
  };
  const of = (
    data: Record<string, Record<string, unknown>>,
    field: string,
  ): Record<string, unknown> & { id: string } => data[field] as never;
  before(async () => {
    client = await fixture.createAccount('documents');
  });

  test('about the account and the catalog', async () => {
    const { myself } = await ask(
      `query myself { myself { ${USER} serverlessDiscount { discountFactor type expirationDate }
        savingsPlans { id } } }`,
    );
    assert.equal(typeof myself?.['id'], 'string');
    const variables = {
      input: { id: GPU },
      price: {
        gpuCount: 1,
        minMemoryInGb: 8,
        minVcpuCount: 2,
        secureCloud: true,
        totalDisk: 10,
        dataCenterId: null,
        includeAiApi: false,
        allowedCudaVersions: [],
        compliance: null,
        countryCode: '',
      },
    };
    const { gpuTypes } = await ask<{
      gpuTypes: { lowestPrice: { stockStatus: string; gpuTypeCudaVersions: unknown[] } }[];
    }>(
      `query GpuTypes($input: GpuTypeFilter, $price: GpuLowestPriceInput) { gpuTypes(input: $input) { ${GPU_TYPE} } }`,
      variables,
    );
    assert.deepEqual([gpuTypes.length, typeof gpuTypes[0]?.lowestPrice.stockStatus], [1, 'string']);
    const rest = await ask<
      Record<string, unknown[]>
    >(`query { dataCenters { id name location listed storageSupport gpuAvailability(input: { gpuCount: 1 })
      { gpuTypeId displayName stockStatus available } } countryCodes serverlessGpuPools { id gpuTypeIds }
      cpuTypes { id displayName } cpuFlavors(input: { id: "cpu3c" }) { id displayName groupId minVcpu
      maxVcpu vcpuBurstable ramMultiplier diskLimitPerVcpu specifics(input: { dataCenterId: "LOCAL-1",
      instanceId: "cpu3c-2-4" }) { stockStatus securePrice slsPrice } }
      listings(input: { searchQuery: "echo",
      limit: 5, offset: 0, orderBy: "title", orderDirection: "asc" }) { ${LISTING} } allAiApiPublicConfigs {
      id aiApiId modelName displayName description metadata isLive createdAt updatedAt } }`);
    assert.deepEqual(
      [rest['dataCenters']?.length, rest['cpuFlavors']?.length, rest['allAiApiPublicConfigs']?.length],
      [1, 1, 0],
    );
    assert.ok((rest['listings']?.length ?? 0) > 0);
    const { listing, listingFromRepo } = await ask(
      `query Q($owner: String!, $name: String!) { listing(id: "echo") { ${LISTING} }
        listingFromRepo(repoOwner: $owner, repoName: $name) { ${LISTING} } }`,
      { owner: 'berth', name: 'echo' },
    );
    assert.deepEqual(listing, listingFromRepo);
  });

  test('a pod on GPUs is deployed, shown, stopped, resumed, edited and terminated', async () => {
    const deploy = `mutation Deploy($input: PodFindAndDeployOnDemandInput) { podFindAndDeployOnDemand(input:
      $input) { id name imageName env machineId desiredStatus costPerHr containerDiskInGb
      volumeInGb volumeMountPath gpuCount memoryInGb vcpuCount ports lastStatusChange machine {
      podHostId gpuDisplayName location } } }`;
    const input = {
      cloudType: 'ALL',
      gpuTypeId: GPU,
      gpuCount: 1,
      name: 'documents',
      imageName: 'local/shell',
      containerDiskInGb: 5,
      volumeInGb: 10,
      volumeMountPath: '/workspace',
      networkVolumeId: '',
      dataCenterId: null,
      countryCode: null,
      ports: '8888/http,22/tcp',
      env: [{ key: 'A', value: 'b' }],
      dockerArgs: STAYS,
      minVcpuCount: 1,
      minMemoryInGb: 1,
      minDownload: null,
      minUpload: null,
      minCudaVersion: '',
      allowedCudaVersions: [],
      containerRegistryAuthId: '',
      supportPublicIp: true,
      startSsh: true,
      startJupyter: false,
      deployCost: 9.5,
      stopAfter: null,
      terminateAfter: null,
      compliance: [],
      templateId: '',
    };
    const { id } = of(await ask(deploy, { input }), 'podFindAndDeployOnDemand');
    const pod = await waitFor('its container runs', async () => {
      const { pod: found } = await ask(`query Pod($input: PodFilter) { pod(input: $input) { ${POD} } }`, {
        input: { podId: id },
      });
      return found?.['runtime'] !== null && found;
    });
    const machine = pod['machine'] as Record<string, unknown>;
    assert.deepEqual(
      [pod['desiredStatus'], pod['podType'], pod['ports'], machine['gpuTypeId'], machine['location']],
      ['RUNNING', 'RESERVED', '8888/http,22/tcp', GPU, 'LOCAL-1'],
    );
    assert.ok((pod['env'] as string[]).includes('A=b'));
    assert.ok(
      Number(machine['vcpuTotal']) > 0 && Number(machine['memoryTotal']) > 0 && machine['cpuTypeId'] !== null,
      'what its machine is like is known',
    );
    assert.equal(
      (pod['latestTelemetry'] as { individualGpuMetrics: unknown[] }).individualGpuMetrics.length,
      1,
    );
    const { myself } = await ask<{ myself: { pods: unknown[] } }>(`query { myself { pods { ${POD} } } }`);
    assert.equal(myself.pods.length, 1);
    assert.equal(
      of(
        await ask(
          'mutation Stop($podId: String!) { podStop(input: { podId: $podId }) { id desiredStatus } }',
          { podId: id },
        ),
        'podStop',
      )['desiredStatus'],
      'EXITED',
    );
    assert.equal(
      of(
        await ask(
          `mutation { podEditJob(input: { podId: "${id}", dockerArgs: "sleep 999", env: [{ key: "C",
            value: "d" }], ports: "80/http", containerDiskInGb: 6, imageName: "local/shell" }) { id env
            ports } }`,
        ),
        'podEditJob',
      )['ports'],
      '80/http',
    );
    const resumed = of(
      await ask(
        `mutation Resume($podId: String!, $gpuCount: Int) { podResume(input: { podId: $podId,
          gpuCount: $gpuCount }) { id desiredStatus imageName env machineId costPerHr lastStatusChange
          machine { podHostId } } }`,
        { podId: id, gpuCount: 1 },
      ),
      'podResume',
    );
    assert.equal(resumed['desiredStatus'], 'RUNNING');
    assert.deepEqual(
      await ask('mutation Terminate($input: PodTerminateInput!) { podTerminate(input: $input) }', {
        input: { podId: id },
      }),
      { podTerminate: null },
    );
  });

  test('a pod that can be interrupted, and one without GPUs', async () => {
    const rented = of(
      await ask(
        `mutation { podRentInterruptable(input: { bidPerGpu: 0.2, cloudType: SECURE, gpuTypeId:
          "${GPU}", gpuCount: 1, name: "spot", imageName: "local/shell", dockerArgs: "${STAYS}",
          containerDiskInGb: 5, volumeInGb: 0, ports: "22/tcp" }) { id podType costPerHr machine {
          podHostId } } }`,
      ),
      'podRentInterruptable',
    );
    assert.equal(rented['podType'], 'INTERRUPTABLE');
    await ask(`mutation { podStop(input: { podId: "${rented.id}" }) { id } }`);
    await ask(
      `mutation { podBidResume(input: { podId: "${rented.id}", bidPerGpu: 0.3, gpuCount: 1 }) { id
        costPerHr desiredStatus lastStatusChange } }`,
    );
    await ask(`mutation { podTerminate(input: { podId: "${rented.id}" }) }`);
    const cpu = of(
      await ask(
        `mutation { deployCpuPod(input: { instanceId: "cpu3c-2-4", cloudType: SECURE, templateId:
          "runpod-ubuntu", deployCost: 1.5, imageName: "local/shell", dockerArgs: "${STAYS}", startSsh:
          true, ports: "22/tcp", containerDiskInGb: 5, networkVolumeId: "" }) { id imageName env
          machineId lastStatusChange cpuFlavorId cpuFlavor { id displayName } machine { podHostId
          gpuTypeId } } }`,
      ),
      'deployCpuPod',
    );
    assert.deepEqual(
      [
        cpu['cpuFlavorId'],
        (cpu['cpuFlavor'] as { id: string }).id,
        (cpu['machine'] as { gpuTypeId: string }).gpuTypeId,
      ],
      ['cpu3c', 'cpu3c', 'unknown'],
    );
    await ask(`mutation { podTerminate(input: { podId: "${cpu.id}" }) }`);
  });

  test('an endpoint is made, written back as it was read, linked to another template and deleted', async () => {
    const template = of(
      await ask(
        `mutation { saveTemplate(input: { name: "documents", imageName: "local/echo", dockerArgs: "",
          containerDiskInGb: 5, volumeInGb: 0, ports: "", env: [{ key: "A", value: "b" }],
          isServerless: true, readme: "", containerRegistryAuthId: "" }) { ${TEMPLATE} } }`,
      ),
      'saveTemplate',
    );
    const input = {
      name: 'documents -fb',
      templateId: template.id,
      gpuIds: 'ADA_24',
      gpuCount: 1,
      networkVolumeId: '',
      locations: '',
      idleTimeout: 5,
      scalerType: 'QUEUE_DELAY',
      scalerValue: 4,
      workersMin: 0,
      workersMax: 1,
      flashBootType: 'FLASHBOOT',
      type: 'QB',
      executionTimeoutMs: 600_000,
      allowedCudaVersions: '',
    };
    const made = of(
      await ask(
        `mutation saveEndpoint($input: EndpointInput!) { saveEndpoint(input: $input) { ${ENDPOINT} } }`,
        { input },
      ),
      'saveEndpoint',
    );
    assert.deepEqual(
      [made['type'], made['gpuIds'], made['templateId'], made['hubReleaseId']],
      ['QB', 'ADA_24', template.id, 'berth-echo'],
    );
    assert.equal((made['workerState'] as unknown[]).length, 1);
    const read = async (): Promise<Record<string, unknown>> =>
      (
        await ask<{ myself: { endpoints: Record<string, unknown>[] } }>(
          `query { myself { endpoints { ${ENDPOINT} } } }`,
        )
      ).myself.endpoints.find(({ id }) => id === made.id) ?? {};
    const { workerState: _state, ...before } = await read();
    await ask('mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }', {
      input: {
        ...before,
        pods: undefined,
        template: undefined,
        networkVolume: undefined,
        flashBootType: '',
        aiKey: '',
      },
    });
    const { workerState: _later, ...after } = await read();
    assert.deepEqual(after, before);
    const other = of(
      await ask(
        `mutation { saveTemplate(input: { name: "documents two", imageName: "local/echo",
          containerDiskInGb: 5, volumeInGb: 0, isServerless: true }) { id } }`,
      ),
      'saveTemplate',
    );
    const linked = of(
      await ask(
        `mutation { updateEndpointTemplate(input: { endpointId: "${made.id}", templateId:
          "${other.id}" }) { id templateId } }`,
      ),
      'updateEndpointTemplate',
    );
    assert.equal(linked['templateId'], other.id);
    assert.deepEqual(
      await ask('query getEndpoint($id: String!) { myself { endpoint(id: $id) { id } } }', { id: made.id }),
      { myself: { endpoint: { id: made.id } } },
    );
    assert.deepEqual(
      await ask('mutation deleteEndpoint($id: String!) { deleteEndpoint(id: $id) }', { id: made.id }),
      { deleteEndpoint: null },
    );
    await ask(
      `query { podTemplate(id: "${template.id}") { ${TEMPLATE} } podTemplates(input: { isRunpod: true
        }) { ${TEMPLATE} } myself { podTemplates { ${TEMPLATE} } } }`,
    );
    for (const name of ['documents', 'documents two'])
      assert.deepEqual(
        await ask('mutation ($name: String!) { deleteTemplate(templateName: $name) }', { name }),
        { deleteTemplate: null },
      );
  });

  test('what an account keeps is made, read and removed', async () => {
    const volume = of(
      await ask(
        `mutation ($input: CreateNetworkVolumeInput!) { createNetworkVolume(input: $input) { id name
          size dataCenterId dataCenter { id name } } }`,
        { input: { name: 'documents', size: 10, dataCenterId: 'LOCAL-1' } },
      ),
      'createNetworkVolume',
    );
    await ask(
      'mutation ($input: UpdateNetworkVolumeInput!) { updateNetworkVolume(input: $input) { id name size } }',
      { input: { id: volume.id, name: 'renamed', size: 20 } },
    );
    const registry = of(
      await ask(
        `mutation SaveRegistryAuth { saveRegistryAuth(input: { name: "documents", username: "u",
          password: "p" }) { id name } }`,
      ),
      'saveRegistryAuth',
    );
    await ask(
      `mutation { updateRegistryAuth(input: { id: "${registry.id}", username: "v", password: "q" }) { id name } }`,
    );
    const secret = of(
      await ask('mutation ($input: SecretCreateInput!) { secretCreate(input: $input) { id name } }', {
        input: { name: 'DOCUMENTS', value: 'v', description: 'd' },
      }),
      'secretCreate',
    );
    await ask(
      'mutation ($input: SecretValueUpdateInput!) { secretValueUpdate(input: $input) { id updatedAt } }',
      { input: { id: secret.id, value: 'w' } },
    );
    await ask(
      'mutation ($input: SecretDescriptionUpdateInput!) { secretDescriptionUpdate(input: $input) { id description } }',
      { input: { id: secret.id, description: 'e' } },
    );
    await ask(
      'mutation ($input: UpdateUserSettingsInput) { updateUserSettings(input: $input) { id pubKey } }',
      { input: { pubKey: 'ssh-ed25519 AAAA documents' } },
    );
    const { myself } = await ask<{ myself: Record<string, { id: string }[]> }>(
      `query { myself { networkVolumes { id name size dataCenterId dataCenter { id name } }
        containerRegistryCreds { id name } secrets { id name } apiKeys { id name permissions createdAt
        lastUsed } } }`,
    );
    assert.deepEqual(
      [myself['networkVolumes'], myself['containerRegistryCreds'], myself['secrets']].map((list) =>
        list?.map(({ id }) => id),
      ),
      [[volume.id], [registry.id], [secret.id]],
    );
    assert.equal(
      of(
        await ask('query ($id: ID!) { secret(id: $id) { id name description createdAt updatedAt } }', {
          id: secret.id,
        }),
        'secret',
      )['description'],
      'e',
    );
    assert.deepEqual(
      await ask(
        `mutation { secretDelete(id: "${secret.id}") deleteRegistryAuth(registryAuthId:
          "${registry.id}") deleteNetworkVolume(input: { id: "${volume.id}" }) }`,
      ),
      { secretDelete: null, deleteRegistryAuth: null, deleteNetworkVolume: null },
    );
    const key = of(
      await ask(
        'mutation { createApiKey(input: { name: "documents", permissions: "READ_ONLY" }) { id key permissions } }',
      ),
      'createApiKey',
    );
    await ask(`mutation { updateApiKey(input: { id: "${key.id}", enabled: false }) { id } }`);
    assert.deepEqual(await ask(`mutation { deleteApiKey(id: "${key.id}") }`), { deleteApiKey: null });
  });

  test('a cluster is made, shown and deleted; one that is gone has a code of its own', async () => {
    const input = {
      clusterName: 'documents',
      gpuTypeId: GPU,
      podCount: 2,
      gpuCountPerPod: 1,
      imageName: 'local/shell',
      dockerArgs: STAYS,
      type: 'APPLICATION',
      deployCost: 9,
      networkVolumeId: '',
      volumeInGb: 0,
      containerDiskInGb: 5,
      env: [],
      ports: '22/tcp',
    };
    const made = of(
      await ask(
        `mutation ($input: CreateClusterInput!) { createCluster(input: $input) { id name pods { id
          clusterIp lastStatusChange imageName machine { podHostId } } } }`,
        { input },
      ),
      'createCluster',
    );
    const { myself } = await ask<{ myself: { cluster: { pods: unknown[] }; clusters: unknown[] } }>(
      `query ($input: ClusterFilter) { myself { cluster(input: $input) { id name type podCount
        gpuCountPerPod pods { id name clusterIdx clusterRole clusterIp desiredStatus } } clusters { id
        } } }`,
      { input: { id: made.id } },
    );
    assert.deepEqual([myself.cluster.pods.length, myself.clusters.length], [2, 1]);
    const remove = 'mutation ($input: DeleteClusterInput!) { deleteCluster(input: $input) }';
    assert.deepEqual(await ask(remove, { input: { id: made.id } }), { deleteCluster: true });
    assert.equal(
      (await client.graphql(remove, { input: { id: 'nosuchcluster' } })).body.errors?.[0]?.extensions?.code,
      'Cluster not found',
    );
  });

  test('spending is reported by kind', async () => {
    const { myself } = await ask<{ myself: { billing: Record<string, unknown[]> } }>(
      `query ($input: UserBillingInput) { myself { spendDetails { localStoragePerHour networkStoragePerHour
        gpuComputePerHour } billing(input: $input) { gpuCloud { gpuTypeId time timeBilledSeconds amount }
      cpuCloud { cpuFlavorId time timeBilledSeconds amount } serverless { endpointId gpuTypeId time
      timeBilledSeconds amount } storage { time amount diskSpaceBilledGB } runpodEndpoint { time amount }
      summary { time gpuCloudAmount serverlessAmount storageAmount } } } }`,
      { input: { granularity: 'DAILY' } },
    );
    assert.ok(Object.values(myself.billing).every((list) => Array.isArray(list)));
  });

  test('every mutation has its entry in the audit log', async () => {
    assert.ok(mutations.size > 20);
    const audited = new Set((await listAuditLog(client)).map(({ requestId }) => requestId));
    assert.deepEqual(
      [...mutations].filter(([, requestId]) => !audited.has(requestId)).map(([document]) => document),
      [],
    );
  });
});
