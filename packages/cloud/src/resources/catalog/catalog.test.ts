import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Engine } from '../../engines/engine.ts';
import { ProcessEngine } from '../../engines/process/process-engine.ts';
import { BerthError } from '../../support/errors.ts';
import { Catalog } from './catalog.ts';
import { CUDA_VERSIONS } from '../../domain/catalog/cuda-versions.ts';
import { type DataCenterDefinition, DEFAULT_DATA_CENTERS } from '../../domain/catalog/data-centers.ts';
import { GPU_TYPES } from '../../domain/catalog/gpu-types.ts';
import { ZERO_PRICES } from '../../domain/catalog/prices.ts';
import { virtualGpus } from './virtual-gpus.ts';
import { type Capacity, type GpuCapacity, NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';

const [local] = DEFAULT_DATA_CENTERS as [DataCenterDefinition];
const cpu = { model: 'Sample CPU', cores: 8, threads: 16 };

function engine(capacity: () => Promise<Capacity>): Engine {
  return { kind: 'process', capacity };
}

function gpu(gpuTypeId: string, total: number, more: Partial<GpuCapacity> = {}): GpuCapacity {
  return { gpuTypeId, total, free: total, virtual: false, cudaVersion: '13.0', memoryInGb: 24, ...more };
}

/** A catalog with one data center per entry, in the country that is its key. */
function catalogOf(countries: Record<string, GpuCapacity[]>): Catalog {
  const engines = new Map(
    Object.entries(countries).map(([country, gpus]) => [
      country,
      engine(() => Promise.resolve({ cpu, memoryInGb: 64, gpus })),
    ]),
  );
  const dataCenters = [...engines.keys()].map((country) => ({
    ...local,
    id: `${country}-1`,
    name: country,
    engine: country,
    countryCode: country,
  }));
  return new Catalog({ dataCenters, engines, prices: ZERO_PRICES });
}

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof BerthError && error.code === code;
}

describe('the catalog of a machine without a GPU', () => {
  const process = new ProcessEngine({
    virtualGpus: virtualGpus('virtual'),
    readMachine: () => Promise.resolve({ cpu, memoryInGb: 32, gpus: [], gpuProblem: null, gpusKnown: true }),
  });
  const catalog = new Catalog({
    dataCenters: DEFAULT_DATA_CENTERS,
    engines: new Map([['process', process]]),
    prices: ZERO_PRICES,
  });

  test('lists every known type and offers the virtual ones', async () => {
    const offers = await catalog.gpus();
    assert.deepEqual(
      offers.map((offer) => offer.type),
      GPU_TYPES,
    );
    const connected = offers.filter((offer) => offer.total > 0);
    assert.deepEqual(
      connected.map(({ type, virtual, availability }) => [type.name, virtual, availability]),
      [
        ['A100 PCIe', true, 'MEDIUM'],
        ['RTX 4090', true, 'MEDIUM'],
        ['H100 SXM', true, 'MEDIUM'],
      ],
    );
    assert.ok(offers.every((offer) => offer.total > 0 || offer.availability === 'NONE'));
    assert.ok(await catalog.isVirtualGpu('LOCAL-1', 'NVIDIA GeForce RTX 4090'));
    assert.ok(!(await catalog.isVirtualGpu('LOCAL-1', 'NVIDIA L4')));
    assert.ok(!(await catalog.isVirtualGpu('GONE-1', 'NVIDIA GeForce RTX 4090')));
  });

  test('a virtual GPU has every CUDA version', async () => {
    const offer = await catalog.gpu('NVIDIA GeForce RTX 4090');
    assert.deepEqual(
      offer.cudaVersions.map(({ version }) => version),
      CUDA_VERSIONS,
    );
  });

  test('lists the types of a data center', async () => {
    assert.deepEqual(
      (await catalog.gpusIn('LOCAL-1', { count: 2 })).map(({ name, availability }) => [name, availability]),
      [
        ['RTX 4090', 'LOW'],
        ['A100 PCIe', 'LOW'],
        ['H100 SXM', 'LOW'],
      ],
    );
    assert.deepEqual(
      (await catalog.cpusIn('LOCAL-1', { vcpuCount: 4 })).map(({ id, availability }) => [id, availability]),
      [
        ['cpu3c', 'HIGH'],
        ['cpu3g', 'MEDIUM'],
        ['cpu3m', 'LOW'],
        ['cpu5c', 'HIGH'],
        ['cpu5g', 'MEDIUM'],
        ['cpu5m', 'LOW'],
      ],
    );
  });

  test('lists its CPU and no country', async () => {
    assert.deepEqual(await catalog.hostCpus(), [
      { id: 'Sample CPU', name: 'Sample CPU', manufacturer: 'unknown', cores: 8, threadsPerCore: 2 },
    ]);
    assert.deepEqual(catalog.countryCodes(), []);
  });
});

describe('the catalog of real GPUs', () => {
  test('lists a connected type that it does not know', async () => {
    const offers = await catalogOf({ FR: [gpu('NVIDIA GeForce RTX 3060', 1, { memoryInGb: 12 })] }).gpus();
    assert.equal(offers.length, GPU_TYPES.length + 1);
    const last = offers.at(-1);
    assert.deepEqual(last?.type, {
      id: 'NVIDIA GeForce RTX 3060',
      name: 'RTX 3060',
      memoryInGb: 12,
      pool: null,
      manufacturer: 'NVIDIA',
    });
    assert.deepEqual(
      [last?.virtual, last?.availability, last?.cudaVersions],
      [false, 'LOW', [{ version: '13.0', availability: 'LOW' }]],
    );
  });

  test('finds a type by id, in any spelling, connected or not', async () => {
    const catalog = catalogOf({ FR: [gpu('NVIDIA GeForce RTX 3060', 1), gpu('NVIDIA A30', 4)] });
    assert.equal((await catalog.gpu('NVIDIA GeForce RTX 3060')).total, 1);
    assert.equal((await catalog.gpu('NVIDIA RTX A30')).total, 4);
    assert.deepEqual(
      [(await catalog.gpu('Tesla T4')).total, (await catalog.gpu('Tesla T4')).availability],
      [0, 'NONE'],
    );
    await assert.rejects(catalog.gpu('no such GPU'), hasCode('not-found'));
  });

  test('an accepted type is listed where it is connected', async () => {
    const listed = async (catalog: Catalog): Promise<boolean> =>
      (await catalog.gpus()).some((offer) => offer.type.id === 'Tesla T4');
    assert.ok(await listed(catalogOf({ FR: [gpu('Tesla T4', 1)] })));
    assert.ok(!(await listed(catalogOf({ FR: [] }))));
  });

  test('country codes filter the list, but not the lookup of one type', async () => {
    const catalog = catalogOf({ FR: [gpu('NVIDIA L4', 4)], US: [gpu('NVIDIA L4', 1), gpu('NVIDIA L40', 1)] });
    const inFrance = await catalog.gpus({ within: { countryCodes: ['FR'] } });
    assert.deepEqual(
      inFrance.map(({ type, total, dataCenters }) => [type.id, total, dataCenters.map(({ id }) => id)]),
      [['NVIDIA L4', 4, ['FR-1']]],
    );
    const abroad = await catalog.gpu('NVIDIA L40', { within: { countryCodes: ['FR'] } });
    assert.deepEqual([abroad.availability, abroad.dataCenters, abroad.maxCount], ['NONE', [], 1]);
    assert.deepEqual(catalog.countryCodes(), ['FR', 'US']);
  });

  test('one data center can be selected', async () => {
    const catalog = catalogOf({ FR: [gpu('NVIDIA L4', 4)], US: [gpu('NVIDIA L4', 1)] });
    assert.equal((await catalog.gpu('NVIDIA L4', { within: { ids: ['US-1'] } })).availability, 'LOW');
    assert.equal((await catalog.gpu('NVIDIA L4')).availability, 'HIGH');
    assert.deepEqual(
      (await catalog.cpu('cpu5c', { within: { ids: ['US-1'] } })).dataCenters.map(({ id }) => id),
      ['US-1'],
    );
  });

  test('every CPU flavour is listed', async () => {
    const offers = await catalogOf({ FR: [] }).cpus({ vcpuCount: 2, products: ['SERVERLESS'] });
    assert.equal(offers.length, 6);
    assert.deepEqual(
      offers.filter(({ availability }) => availability === 'NONE').map(({ flavor }) => flavor.id),
      ['cpu3m', 'cpu5m'],
    );
  });

  test('prices are those of the operator', async () => {
    const engines = new Map([['process', engine(() => Promise.resolve(NO_CAPACITY))]]);
    const catalog = new Catalog({
      dataCenters: DEFAULT_DATA_CENTERS,
      engines,
      prices: { gpu: { 'NVIDIA A30': { secure: 0.3 } }, cpu: { cpu3c: { secure: 0.04 } } },
    });
    assert.deepEqual((await catalog.gpu('NVIDIA RTX A30')).prices, {
      secure: 0.3,
      community: 0,
      serverless: 0,
      spot: 0,
    });
    assert.deepEqual((await catalog.cpu('cpu3c')).prices, { secure: 0.04, serverless: 0 });
  });
});

describe('when something is missing', () => {
  test('unknown ids are not found', async () => {
    const catalog = catalogOf({ FR: [] });
    await assert.rejects(catalog.cpu('cpu9x'), hasCode('not-found'));
    await assert.rejects(catalog.gpusIn('XX-1'), hasCode('not-found'));
    assert.throws(() => catalog.dataCenter('XX-1'), hasCode('not-found'));
    assert.equal(catalog.dataCenter('FR-1').name, 'FR');
    assert.deepEqual(catalog.dataCenters({ regions: ['ASIA'] }), []);
  });

  test('a data center needs its engine', () => {
    assert.throws(
      () => new Catalog({ dataCenters: DEFAULT_DATA_CENTERS, engines: new Map(), prices: ZERO_PRICES }),
      hasCode('rule'),
    );
  });

  test('an unavailable engine offers nothing and does not affect others', async () => {
    const away = engine(() => Promise.reject(new BerthError('unavailable', 'the daemon does not answer')));
    const here = engine(() => Promise.resolve({ cpu, memoryInGb: 64, gpus: [gpu('NVIDIA L4', 1)] }));
    const dataCenters = [local, { ...local, id: 'AWAY-1', engine: 'away' }];
    const catalog = new Catalog({
      dataCenters,
      engines: new Map([
        ['process', here],
        ['away', away],
      ]),
      prices: ZERO_PRICES,
    });
    assert.deepEqual(
      (await catalog.gpu('NVIDIA L4')).dataCenters.map(({ id }) => id),
      ['LOCAL-1'],
    );
    assert.deepEqual(
      (await catalog.hostCpus()).map(({ id }) => id),
      ['Sample CPU'],
    );
    assert.equal(catalog.dataCenters().length, 2);
  });

  test('an unexpected error of an engine is not hidden', async () => {
    const broken = engine(() => Promise.reject(new Error('broken')));
    const catalog = new Catalog({
      dataCenters: DEFAULT_DATA_CENTERS,
      engines: new Map([['process', broken]]),
      prices: ZERO_PRICES,
    });
    await assert.rejects(catalog.gpus(), /broken/);
  });
});
