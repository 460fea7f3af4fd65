import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture } from './graphql.fixture.ts';

type Gpu = Record<string, unknown> & { id: string; lowestPrice: Record<string, unknown> };

describe('the catalog', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  const gpus = async (args: string, selection: string): Promise<Gpu[]> => {
    const { data, errors } = await berth.ask(`{ gpuTypes${args} { id ${selection} } }`, { key: null });
    assert.deepEqual(errors, []);
    return (data as { gpuTypes: Gpu[] }).gpuTypes;
  };
  const RTX_4090 = '(input: {id: "NVIDIA GeForce RTX 4090"})';
  const price = async (input: string, selection: string): Promise<Record<string, unknown> | undefined> =>
    (await gpus(RTX_4090, `lowestPrice(input: {${input}}) { ${selection} }`))[0]?.lowestPrice;

  test('shows a GPU type whole', async () => {
    const selection = `displayName manufacturer memoryInGb cudaCores secureCloud communityCloud securePrice
      communityPrice secureSpotPrice communitySpotPrice clusterPrice
      oneWeekPrice oneMonthPrice threeMonthPrice sixMonthPrice maxGpuCount maxGpuCountCommunityCloud
      maxGpuCountSecureCloud minPodGpuCount nodeGroupGpuSizes nodeGroupDatacenters { id } throughput virtual`;
    assert.deepEqual(await gpus(RTX_4090, selection), [
      {
        id: 'NVIDIA GeForce RTX 4090',
        displayName: 'RTX 4090',
        manufacturer: 'NVIDIA',
        memoryInGb: 24,
        cudaCores: null,
        secureCloud: true,
        communityCloud: false,
        securePrice: 0.5,
        communityPrice: 0.4,
        secureSpotPrice: 0.2,
        communitySpotPrice: 0.2,
        clusterPrice: 0.5,
        oneWeekPrice: null,
        oneMonthPrice: null,
        threeMonthPrice: null,
        sixMonthPrice: null,
        maxGpuCount: 2,
        maxGpuCountCommunityCloud: 0,
        maxGpuCountSecureCloud: 2,
        minPodGpuCount: 1,
        nodeGroupGpuSizes: [],
        nodeGroupDatacenters: [{ id: 'LOCAL-1' }, { id: 'EU-RO-1' }],
        throughput: null,
        virtual: true,
      },
    ]);
  });

  test('lists all types, those that were asked for, or those that can be clustered', async () => {
    assert.ok((await gpus('', 'virtual')).length > 40);
    assert.deepEqual(
      (await gpus('(input: {ids: ["NVIDIA A40", "NVIDIA  RTX A4500"]})', '')).map(({ id }) => id),
      ['NVIDIA A40', 'NVIDIA RTX A4500'],
      'also by another spelling',
    );
    assert.deepEqual((await gpus('(input: {cluster: true})', '')).map(({ id }) => id).sort(), [
      'NVIDIA A100 80GB PCIe',
      'NVIDIA GeForce RTX 4090',
      'NVIDIA H100 80GB HBM3',
    ]);
    assert.ok((await gpus('(input: {cluster: false})', '')).length > 40);
    assert.deepEqual(await gpus('(input: {id: "NVIDIA Abacus"})', ''), []);
    assert.ok(
      (await gpus('(input: {id: "", ids: []})', '')).length > 40,
      'an empty id asks for none in particular',
    );
  });

  test('shows the price and the stock of a type', async () => {
    assert.deepEqual(
      await price(
        'gpuCount: 2',
        'gpuName gpuTypeId minimumBidPrice uninterruptablePrice stockStatus rentalPercentage ' +
          'rentedCount totalCount maxUnreservedGpuCount availableGpuCounts countryCode compliance',
      ),
      {
        gpuName: 'RTX 4090',
        gpuTypeId: 'NVIDIA GeForce RTX 4090',
        minimumBidPrice: 0.2,
        uninterruptablePrice: 0.5,
        stockStatus: 'Medium',
        rentalPercentage: 0,
        rentedCount: 0,
        totalCount: 4,
        maxUnreservedGpuCount: 2,
        availableGpuCounts: [1, 2],
        countryCode: null,
        compliance: [],
      },
    );
    assert.deepEqual(
      await price('secureCloud: false, countryCode: "ro"', 'uninterruptablePrice countryCode'),
      { uninterruptablePrice: 0.4, countryCode: 'RO' },
    );
  });

  test('has no stock as null, which clients understand, in every case of it', async () => {
    const none = { minimumBidPrice: null, uninterruptablePrice: null, stockStatus: null };
    for (const input of [
      'gpuCount: 3',
      'countryCode: "US"',
      'dataCenterId: "MOON-1"',
      'compliance: [HIPAA]',
      'globalNetwork: true',
      'minCudaVersion: "99.0"',
      'allowedCudaVersions: ["1.0"]',
    ]) {
      assert.deepEqual(await price(input, 'minimumBidPrice uninterruptablePrice stockStatus'), none, input);
    }
    const [unconnected] = await gpus(
      '(input: {id: "NVIDIA A40"})',
      'secureCloud lowestPrice { stockStatus minMemory minVcpu totalCount availableGpuCounts ' +
        'gpuTypeCudaVersions { cudaVersion } }',
    );
    assert.deepEqual(unconnected, {
      id: 'NVIDIA A40',
      secureCloud: false,
      lowestPrice: {
        stockStatus: null,
        minMemory: null,
        minVcpu: null,
        totalCount: 0,
        availableGpuCounts: [],
        gpuTypeCudaVersions: [],
      },
    });
  });

  test('finds stock by place and by CUDA version', async () => {
    assert.deepEqual(
      await price(
        'dataCenterId: "EU-RO-1", compliance: [GDPR], globalNetwork: false',
        'stockStatus totalCount',
      ),
      { stockStatus: 'Medium', totalCount: 2 },
    );
    assert.deepEqual(await price('cudaVersion: "12.8"', 'gpuTypeCudaVersions { cudaVersion availability }'), {
      gpuTypeCudaVersions: [{ cudaVersion: '12.8', availability: 'AVAILABLE' }],
    });
  });

  test('shows CPU flavours with what they cost', async () => {
    const { data } = await berth.ask(
      `{ cpuFlavors(input: {id: "cpu3c"}) { id groupId groupName displayName minVcpu maxVcpu
        vcpuBurstable ramMultiplier diskLimitPerVcpu specifics { stockStatus securePrice slsPrice } } }`,
      { key: null },
    );
    assert.deepEqual(data, {
      cpuFlavors: [
        {
          id: 'cpu3c',
          groupId: 'Gen 3',
          groupName: 'Gen 3',
          displayName: 'Compute-Optimized',
          minVcpu: 2,
          maxVcpu: 32,
          vcpuBurstable: true,
          ramMultiplier: 2,
          diskLimitPerVcpu: 10,
          specifics: { stockStatus: 'High', securePrice: 0.08, slsPrice: 0.06 },
        },
      ],
    });
    assert.equal(
      ((await berth.ask('{ cpuFlavors { id } }', { key: null })).data as { cpuFlavors: unknown[] }).cpuFlavors
        .length,
      6,
    );
  });

  test('shows one CPU instance', async () => {
    const specifics = async (input: string): Promise<unknown> => {
      const answer = await berth.ask(
        `{ cpuFlavors(input: {id: "cpu3c"}) { specifics(input: {${input}}) { stockStatus securePrice } } }`,
        { key: null },
      );
      return (
        answer.message || (answer.data as { cpuFlavors: { specifics: unknown }[] }).cpuFlavors[0]?.specifics
      );
    };
    assert.deepEqual(await specifics('instanceId: "cpu3c-8-16", dataCenterId: "LOCAL-1"'), {
      stockStatus: 'High',
      securePrice: 0.32,
    });
    assert.deepEqual(await specifics('instanceId: "cpu3c-32-64", dataCenterId: "LOCAL-1"'), {
      stockStatus: 'Low',
      securePrice: 1.28,
    });
    assert.deepEqual(
      await specifics('instanceId: "cpu3c-1-2"'),
      { stockStatus: null, securePrice: 0.04 },
      'smaller than the smallest',
    );
    assert.deepEqual(await specifics('dataCenterId: "MOON-1"'), { stockStatus: null, securePrice: 0.08 });
    assert.equal(await specifics('instanceId: "cpu5c-2-4"'), null, 'of another flavour');
    assert.equal(await specifics('instanceId: "cpu3c-2-99"'), null, 'of no flavour');
    assert.match(String(await specifics('instanceId: "large"')), /for example cpu3c-2-4/);
  });

  test('names the processors of its machines', async () => {
    assert.deepEqual(
      (
        await berth.ask('{ cpuTypes { id displayName manufacturer cores threadsPerCore groupId } }', {
          key: null,
        })
      ).data,
      {
        cpuTypes: [
          {
            id: 'AMD Sample 16-Core',
            displayName: 'AMD Sample 16-Core',
            manufacturer: 'AMD',
            cores: 16,
            threadsPerCore: 2,
            groupId: null,
          },
        ],
      },
    );
  });

  test('lists data centers with their stock', async () => {
    const { data } = await berth.ask(
      `{ dataCenters { id name location listed storageSupport compliance globalNetwork
      gpuAvailability(input: {gpuCount: 2}) { id gpuTypeId displayName gpuTypeDisplayName stockStatus
      available gpuType { id virtual } } none: gpuAvailability(input: {gpuCount: 9}) { stockStatus available
      } } countryCodes }`,
      { key: null },
    );
    const { dataCenters, countryCodes } = data as {
      dataCenters: Record<string, unknown>[];
      countryCodes: string[];
    };
    assert.deepEqual(countryCodes, ['RO']);
    const [{ gpuAvailability, none, ...local } = {}, romania] = dataCenters;
    assert.deepEqual(local, {
      id: 'LOCAL-1',
      name: 'This machine',
      location: 'This machine',
      listed: true,
      storageSupport: true,
      compliance: [],
      globalNetwork: false,
    });
    assert.deepEqual((gpuAvailability as unknown[])[0], {
      id: 'NVIDIA GeForce RTX 4090',
      gpuTypeId: 'NVIDIA GeForce RTX 4090',
      displayName: 'RTX 4090',
      gpuTypeDisplayName: 'RTX 4090',
      stockStatus: 'Low',
      available: true,
      gpuType: { id: 'NVIDIA GeForce RTX 4090', virtual: true },
    });
    assert.deepEqual((none as unknown[])[0], { stockStatus: null, available: false });
    assert.deepEqual([romania?.['location'], romania?.['compliance']], ['RO', ['GDPR']]);
  });

  test('lists the pools of endpoints', async () => {
    const { data } = await berth.ask('{ serverlessGpuPools { id displayName gpuTypeIds } }', { key: null });
    const pools = (
      data as { serverlessGpuPools: { id: string; displayName: string; gpuTypeIds: string[] }[] }
    ).serverlessGpuPools;
    assert.deepEqual(
      pools.find(({ id }) => id === 'ADA_24'),
      {
        id: 'ADA_24',
        displayName: '24 GB PRO',
        gpuTypeIds: pools.find(({ id }) => id === 'ADA_24')?.gpuTypeIds,
      },
    );
    assert.ok(pools.find(({ id }) => id === 'ADA_24')?.gpuTypeIds.includes('NVIDIA GeForce RTX 4090'));
  });
});
