import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture, GraphqlResponse } from './graphql.fixture.ts';

/**
 * What known clients send, in the form in which they send it: which fields, inline or as
 * variables, with which stand-ins for "not set", and what they make of the answer.
 */
let berth: GraphqlFixture;
before(async () => {
  berth = await startGraphqlFixture();
});
after(() => berth.close());

function answered({ status, errors, data }: GraphqlResponse): Record<string, unknown> {
  assert.deepEqual([status, errors], [200, []]);
  return data ?? {};
}

describe('runpodctl', () => {
  test('reads the account into numbers, texts and flags', async () => {
    const { myself } = answered(
      await berth.ask(
        `query { myself { id email clientBalance currentSpendPerHr spendLimit notifyPodsStale
          notifyPodsGeneral notifyLowBalance } }`,
        { variables: {} },
      ),
    ) as { myself: Record<string, unknown> };
    assert.equal(typeof myself['clientBalance'], 'number');
    assert.equal(typeof myself['notifyPodsStale'], 'boolean');
  });

  test('sends null for variables where it has none', async () => {
    const answer = await berth.post(
      JSON.stringify({ query: 'query { serverlessGpuPools { id gpuTypeIds } }', variables: null }),
      { authorization: `Bearer ${berth.rootKey}`, 'content-type': 'application/json' },
    );
    assert.ok((answered(answer)['serverlessGpuPools'] as unknown[]).length > 0);
  });

  test('counts a GPU as available where a data center reports any stock', async () => {
    const { gpuTypes } = answered(
      await berth.ask(
        'query { gpuTypes { id displayName memoryInGb secureCloud communityCloud securePrice communityPrice } }',
      ),
    ) as { gpuTypes: { id: string }[] };
    const { dataCenters } = answered(
      await berth.ask(
        'query { dataCenters { id name location gpuAvailability { gpuTypeId displayName stockStatus } } }',
      ),
    ) as { dataCenters: { gpuAvailability: { gpuTypeId: string; stockStatus: string | null }[] }[] };
    const inStock = new Set(
      dataCenters
        .flatMap(({ gpuAvailability }) => gpuAvailability)
        .filter(({ stockStatus }) => stockStatus !== null)
        .map(({ gpuTypeId }) => gpuTypeId),
    );
    assert.equal(inStock.size, 3);
    assert.ok([...inStock].every((id) => gpuTypes.some((gpu) => gpu.id === id)));
  });

  test('labels the ports of a template by writing the whole template back', async () => {
    answered(
      await berth.ask(
        `mutation { saveTemplate(input: {name: "labelled", imageName: "a:1", containerDiskInGb: 10,
          volumeInGb: 0, ports: "8888/http", isServerless: true}) { id } }`,
      ),
    );
    const read = `query { myself { podTemplates { id name imageName dockerArgs env { key value } ports
      volumeMountPath volumeInGb containerDiskInGb containerRegistryAuthId
      startJupyter startSsh startScript isServerless isPublic readme advancedStart category } } }`;
    const state = async (): Promise<Record<string, unknown> | undefined> =>
      (
        answered(await berth.ask(read)) as { myself: { podTemplates: Record<string, unknown>[] } }
      ).myself.podTemplates.find(({ name }) => name === 'labelled');
    const before = await state();
    const input = {
      ...before,
      containerRegistryAuthId: '',
      portsConfig: [{ port: '8888', name: 'Notebook' }],
    };
    answered(
      await berth.ask(
        'mutation UpdateTemplatePortLabels($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }',
        { variables: { input } },
      ),
    );
    assert.deepEqual(await state(), before);
    assert.deepEqual(
      answered(
        await berth.ask('query ($id: String!) { podTemplate(id: $id) { portsConfig { port name } } }', {
          variables: { id: before?.['id'] },
        }),
      ),
      { podTemplate: { portsConfig: [{ port: '8888', name: 'Notebook' }] } },
    );
  });

  test('lists official and community templates one after the other', async () => {
    const list = `query PodTemplates($input: PodTemplateInput) { podTemplates(input: $input) { id name imageName
        isServerless isPublic isRunpod category containerDiskInGb volumeInGb volumeMountPath } }`;
    assert.ok(
      (
        answered(await berth.ask(list, { variables: { input: { isRunpod: true } } }))[
          'podTemplates'
        ] as unknown[]
      ).length > 0,
    );
    assert.deepEqual(
      answered(await berth.ask(list, { variables: { input: { isRunpod: false } } }))['podTemplates'],
      [],
    );
  });

  test('adds an SSH key to those that are there', async () => {
    const add =
      'mutation Mutation($input: UpdateUserSettingsInput) { updateUserSettings(input: $input) { id } }';
    answered(
      await berth.ask(add, {
        variables: { input: { pubKey: 'ssh-ed25519 AAAA one\n\nssh-ed25519 BBBB two' } },
      }),
    );
    assert.deepEqual(answered(await berth.ask('query myself { myself { id pubKey } }')), {
      myself: { id: 'root', pubKey: 'ssh-ed25519 AAAA one\n\nssh-ed25519 BBBB two' },
    });
  });
});

describe('runpod-python', () => {
  test('writes templates inline, with an empty text for what is not set', async () => {
    const create = (more: string): string => `
      mutation {
        saveTemplate(
          input: {
            name: "from python", imageName: "a:1", dockerArgs: "", containerDiskInGb: 10, volumeInGb: 0,
            ports: "", env: [], isServerless: false, startSsh: true, isPublic: false, readme: ""${more}
          }
        ) { id name imageName dockerArgs containerDiskInGb volumeInGb volumeMountPath ports env { key value
        } isServerless }
      }`;
    const { saveTemplate } = answered(await berth.ask(create(', containerRegistryAuthId: ""'))) as {
      saveTemplate: Record<string, unknown>;
    };
    assert.deepEqual(
      { ...saveTemplate, id: '' },
      {
        id: '',
        name: 'from python',
        imageName: 'a:1',
        dockerArgs: '',
        containerDiskInGb: 10,
        volumeInGb: 0,
        volumeMountPath: '/workspace',
        ports: '',
        env: [],
        isServerless: false,
      },
    );
    const again = await berth.ask(create(''));
    assert.equal(again.status, 200);
    assert.ok(again.text.includes('"errors"'), 'the presence of the key is what it tests');
  });

  test('saves, renews and deletes registry credentials inline', async () => {
    const { saveRegistryAuth } = answered(
      await berth.ask(
        `mutation SaveRegistryAuth { saveRegistryAuth( input: { name: "python", username: "u",
          password: "p" } ) { id name } }`,
      ),
    ) as { saveRegistryAuth: { id: string } };
    answered(
      await berth.ask(
        `mutation UpdateRegistryAuth { updateRegistryAuth( input: { id: "${saveRegistryAuth.id}",
          username: "u2", password: "p2" } ) { id name } }`,
      ),
    );
    assert.deepEqual(
      answered(
        await berth.ask(
          `mutation DeleteRegistryAuth { deleteRegistryAuth( registryAuthId: "${saveRegistryAuth.id}" ) }`,
        ),
      ),
      { deleteRegistryAuth: null },
    );
  });

  test('needs one GPU type back before it makes a pod', async () => {
    const query = `query GpuTypes { gpuTypes(input: {id: "NVIDIA H100 80GB HBM3"}) { id displayName manufacturer
        memoryInGb cudaCores secureCloud communityCloud securePrice communityPrice oneMonthPrice
        threeMonthPrice oneWeekPrice communitySpotPrice secureSpotPrice lowestPrice(input: {gpuCount:
        1}) { minimumBidPrice uninterruptablePrice } } }`;
    assert.equal((answered(await berth.ask(query))['gpuTypes'] as unknown[]).length, 1);
  });

  test('reads the user with the volumes', async () => {
    assert.deepEqual(
      answered(
        await berth.ask('query myself { myself { id pubKey networkVolumes { id name size dataCenterId } } }'),
      )['myself'],
      { id: 'root', pubKey: 'ssh-ed25519 AAAA one\n\nssh-ed25519 BBBB two', networkVolumes: [] },
    );
  });
});

describe('dstack and gpuhunt', () => {
  const context = (query: string, variables?: Record<string, unknown>): Promise<GraphqlResponse> =>
    berth.ask(query, { key: null, variables });

  test('find their way through the catalog without a key', async () => {
    const { dataCenters, gpuTypes, countryCodes } = answered(
      await context(
        `query GpuTypes { countryCodes dataCenters { id name listed __typename } gpuTypes {
          maxGpuCount maxGpuCountCommunityCloud maxGpuCountSecureCloud minPodGpuCount id displayName
          memoryInGb secureCloud communityCloud __typename } }`,
        {},
      ),
    ) as {
      dataCenters: { id: string; listed: boolean }[];
      gpuTypes: { maxGpuCount: number }[];
      countryCodes: string[];
    };
    assert.ok(dataCenters.every(({ listed }) => listed));
    assert.equal(Math.max(...gpuTypes.map(({ maxGpuCount }) => maxGpuCount)), 2);
    assert.deepEqual(countryCodes, ['RO']);
  });

  test('send variables that the document does not declare, and nulls', async () => {
    const query = `query GpuTypes($lowestPriceInput: GpuLowestPriceInput, $gpuTypesInput: GpuTypeFilter) {
      gpuTypes(input: $gpuTypesInput) { id maxGpuCount clusterPrice nodeGroupDatacenters { id }
      lowestPrice(input: $lowestPriceInput) { minimumBidPrice uninterruptablePrice minVcpu minMemory
      stockStatus compliance countryCode __typename } } }`;
    const lowestPriceInput = {
      secureCloud: true,
      dataCenterId: 'LOCAL-1',
      gpuCount: 1,
      minDisk: null,
      minMemoryInGb: null,
      minVcpuCount: null,
      minCudaVersion: '12.8',
    };
    const { gpuTypes } = answered(
      await context(query, { GpuTypeFilter: { cluster: false }, lowestPriceInput }),
    ) as { gpuTypes: { id: string; lowestPrice: { stockStatus: string | null } }[] };
    assert.equal(gpuTypes.filter(({ lowestPrice }) => lowestPrice.stockStatus !== null).length, 3);
    const clusters = answered(
      await context(query, { gpuTypesInput: { cluster: true }, lowestPriceInput: { gpuCount: 8 } }),
    ) as { gpuTypes: unknown[] };
    assert.equal(clusters.gpuTypes.length, 3);
  });

  test('ask every CPU flavour for its stock in one data center', async () => {
    const query = `query CpuFlavors($dataCenterId: String!) { cpuFlavors { id displayName groupId minVcpu maxVcpu
        ramMultiplier diskLimitPerVcpu specifics(input: { dataCenterId: $dataCenterId }) { stockStatus
        securePrice } } }`;
    const { cpuFlavors } = answered(await context(query, { dataCenterId: 'LOCAL-1' })) as {
      cpuFlavors: { specifics: { stockStatus: string | null } }[];
    };
    assert.ok(cpuFlavors.every(({ specifics }) => specifics.stockStatus !== null));
  });

  test('make and delete volumes, and take one that is gone for deleted', async () => {
    const create = `mutation ($input: CreateNetworkVolumeInput!) { createNetworkVolume(input: $input) { id name
        size dataCenterId dataCenter { id name } } }`;
    const { createNetworkVolume } = answered(
      await berth.ask(create, { variables: { input: { name: 'd', size: 10, dataCenterId: 'LOCAL-1' } } }),
    ) as { createNetworkVolume: { id: string } };
    const remove = 'mutation ($input: DeleteNetworkVolumeInput!) { deleteNetworkVolume(input: $input) }';
    const variables = { input: { id: createNetworkVolume.id } };
    assert.deepEqual(answered(await berth.ask(remove, { variables })), { deleteNetworkVolume: null });
    assert.ok(
      (await berth.ask(remove, { variables })).message.includes('Tried to delete nonexistent network volume'),
    );
  });
});

describe('others', () => {
  test('Pulumi brings its key in the address and declares the types of its inputs', async () => {
    const ask = (query: string, variables: Record<string, unknown>): Promise<GraphqlResponse> =>
      berth.post(
        JSON.stringify({ query, variables }),
        { 'content-type': 'application/json' },
        { api_key: berth.rootKey },
      );
    const { secretCreate } = answered(
      await ask(
        `mutation SecretCreate($input: SecretCreateInput!) { secretCreate(input: $input) { id name
          description createdAt updatedAt } }`,
        { input: { name: 'pulumi', value: 'v', description: 'd' } },
      ),
    ) as { secretCreate: { id: string } };
    answered(
      await ask(
        `mutation ($input: SecretValueUpdateInput!) { secretValueUpdate(input: $input) { id name
          description createdAt updatedAt } }`,
        { input: { id: secretCreate.id, value: 'w' } },
      ),
    );
    answered(
      await ask(
        `mutation ($input: SecretDescriptionUpdateInput!) { secretDescriptionUpdate(input: $input) {
          id description } }`,
        { input: { id: secretCreate.id, description: 'e' } },
      ),
    );
    answered(
      await ask('query ($id: ID!) { secret(id: $id) { id name description createdAt updatedAt } }', {
        id: secretCreate.id,
      }),
    );
    answered(await ask('query { myself { secrets { id name } } }', {}));
    assert.deepEqual(
      answered(await ask('mutation ($id: ID!) { secretDelete(id: $id) }', { id: secretCreate.id })),
      { secretDelete: null },
    );
  });

  test('the MCP server learns from myself whether it is known', async () => {
    assert.equal(
      (await berth.ask('query { myself { id } }', { key: null })).text,
      '{"data":{"myself":null}}',
    );
    assert.equal((await berth.ask('query { myself { id } }', { key: 'wrong' })).status, 401);
  });

  test('SkyPilot finds its templates and deletes them by name', async () => {
    answered(
      await berth.ask(
        `mutation { saveTemplate(input: {name: "sky", imageName: "a:1", dockerArgs: "",
          containerDiskInGb: 10, volumeInGb: 0}) { id name } }`,
      ),
    );
    assert.ok(
      (
        answered(await berth.ask('query { myself { podTemplates { id name } } }')) as {
          myself: { podTemplates: { name: string }[] };
        }
      ).myself.podTemplates.some(({ name }) => name === 'sky'),
    );
    assert.deepEqual(answered(await berth.ask('mutation { deleteTemplate(templateName: "sky") }')), {
      deleteTemplate: null,
    });
  });

  test('flash asks for one CPU instance in one data center', async () => {
    const query = `query ($flavor: CpuFlavorInput, $specifics: SpecificsInput) { cpuFlavors(input: $flavor) { id
        groupId vcpuBurstable specifics(input: $specifics) { stockStatus securePrice slsPrice } } }`;
    const { cpuFlavors } = answered(
      await berth.ask(query, {
        variables: {
          flavor: { id: 'cpu3c' },
          specifics: { dataCenterId: 'EU-RO-1', instanceId: 'cpu3c-4-8' },
        },
      }),
    ) as { cpuFlavors: { specifics: unknown }[] };
    assert.deepEqual(cpuFlavors[0]?.specifics, { stockStatus: 'High', securePrice: 0.16, slsPrice: 0.12 });
  });
});
