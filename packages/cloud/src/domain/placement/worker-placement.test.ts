import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import type { Endpoint } from '../records.ts';
import { placeWorker, reserveCapacity } from './worker-placement.ts';
import type { WorkerCandidate } from './worker-placement.ts';
import { type GpuCapacity, NO_CAPACITY } from './engine-capacity.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const [A40, L4, RTX] = ['NVIDIA A40', 'NVIDIA L4', 'NVIDIA GeForce RTX 4090'] as const;

const gpu = (gpuTypeId: string, free: number, over: Partial<GpuCapacity> = {}): GpuCapacity => ({
  gpuTypeId,
  total: 8,
  free,
  virtual: false,
  cudaVersion: '12.4',
  memoryInGb: 24,
  ...over,
});
const site = (
  dataCenterId: string,
  gpus: GpuCapacity[] = [],
  over: Partial<WorkerCandidate> = {},
): WorkerCandidate => ({
  dataCenterId,
  images: 'containers',
  capacity: { ...NO_CAPACITY, gpus },
  imageProblem: undefined,
  volumeId: undefined,
  ...over,
});
const onGpu = (over: Partial<Endpoint> = {}): Endpoint => ({
  ...sampleEndpoint,
  compute: 'GPU',
  gpuTypeIds: [],
  gpuPools: [],
  excludedGpuTypes: [],
  gpuCount: 1,
  ...over,
});
const onCpu = (over: Partial<Endpoint> = {}): Endpoint => ({
  ...sampleEndpoint,
  compute: 'CPU',
  gpuCount: 0,
  ...over,
});

function placeOf(endpoint: Endpoint, sites: readonly WorkerCandidate[]): string {
  const placement = placeWorker(endpoint, sites);
  return 'refused' in placement
    ? placement.refused
    : `${placement.place.dataCenterId} ${placement.place.gpuTypeId ?? 'CPU'}`;
}

describe('the placement of a worker', () => {
  test('takes the most preferred free GPU, in any data center', () => {
    const sites = [site('A', [gpu(L4, 4)]), site('B', [gpu(RTX, 0), gpu(A40, 1)])];
    assert.equal(placeOf(onGpu({ gpuTypeIds: [RTX, A40, L4] }), sites), `B ${A40}`);
    assert.equal(placeOf(onGpu(), sites), `A ${L4}`);
  });

  test('takes several GPUs from one machine', () => {
    const sites = [site('A', [gpu(A40, 1), gpu(A40, 1)]), site('B', [gpu(A40, 2)])];
    assert.equal(placeOf(onGpu({ gpuTypeIds: [A40], gpuCount: 2 }), sites), `B ${A40}`);
    assert.match(
      placeOf(onGpu({ gpuTypeIds: [A40], gpuCount: 3 }), sites),
      /^A has 8 NVIDIA A40, 1 free; 8 NVIDIA A40, 1 free\. B has 8 NVIDIA A40, 2 free\. Asked for: 3 NVIDIA A40\.$/,
    );
    assert.match(
      placeOf(onGpu(), [site('A', [])]),
      /^A has no GPU \(the setting gpus: virtual.*\)\. Asked for: 1 GPU\.$/,
    );
  });

  test('honours a required CUDA version, which a virtual GPU always has', () => {
    const endpoint = onGpu({ gpuTypeIds: [A40], minCudaVersion: '12.6' });
    assert.equal(
      placeOf(endpoint, [site('old', [gpu(A40, 1)]), site('new', [gpu(A40, 1, { cudaVersion: '12.8' })])]),
      `new ${A40}`,
    );
    assert.equal(
      placeOf(endpoint, [site('virtual', [gpu(A40, 1, { virtual: true, cudaVersion: null })])]),
      `virtual ${A40}`,
    );
  });

  test('uses the data centers of the endpoint and of its volume only', () => {
    const sites = [site('A'), site('B'), site('C', [], { volumeId: 'v' })];
    assert.equal(placeOf(onCpu({ dataCenterIds: ['B'] }), sites), 'B CPU');
    assert.equal(placeOf(onCpu({ networkVolumeIds: ['v'] }), sites), 'C CPU');
    assert.equal(
      placeOf(onCpu({ dataCenterIds: ['B'], networkVolumeIds: ['v'] }), sites),
      "none of the data centers B is connected with the endpoint's network volume",
    );
    assert.equal(placeOf(onCpu(), []), 'none of the data centers (any) is connected');
  });

  test('gives the reason of an engine that runs such images', () => {
    const sites = [
      site('A', [], { images: 'folders', imageProblem: 'only folders run here' }),
      site('B', [], { imageProblem: 'not a name of an image' }),
    ];
    assert.equal(placeOf(onCpu({ image: 'Bad Name' }), sites), 'not a name of an image');
    assert.equal(placeOf(onCpu({ image: 'local/x' }), sites), 'only folders run here');
    assert.equal(placeOf(onCpu(), [...sites, site('C')]), 'C CPU');
  });

  test('gives a CPU worker the memory of its flavor', () => {
    const placement = placeWorker(onCpu({ cpuFlavors: [{ id: 'cpu5g', vcpuCount: 4 }] }), [site('A')]);
    assert.deepEqual(placement, {
      place: { dataCenterId: 'A', gpuTypeId: null, gpuCount: 0, cpu: 4, memoryInGb: 16, volumeId: undefined },
    });
  });
});

test(`a GPU is never given to two workers (seed ${seed})`, () => {
  const anySite = fc.array(fc.record({ type: fc.constantFrom(A40, L4, RTX), free: fc.nat(8) }), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(
      fc.array(anySite, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 4 }),
      (given, gpuCount) => {
        const sites = given.map((gpus, index) =>
          site(
            `S${index}`,
            gpus.map(({ type, free }) => gpu(type, free)),
          ),
        );
        const machines = given.flat();
        const endpoint = onGpu({ gpuCount });
        let placed = 0;
        for (
          let placement = placeWorker(endpoint, sites);
          'place' in placement;
          placement = placeWorker(endpoint, sites)
        ) {
          reserveCapacity(sites, endpoint, placement.place);
          placed += 1;
          assert.ok(sites.every(({ capacity }) => capacity.gpus.every(({ free }) => free >= 0)));
        }
        // No machine with room for one more is left over.
        assert.equal(
          placed,
          machines.reduce((sum, { free }) => sum + Math.floor(free / gpuCount), 0),
        );
      },
    ),
    { seed, numRuns: 500 },
  );
});
