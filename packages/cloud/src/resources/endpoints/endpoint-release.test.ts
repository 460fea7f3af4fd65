import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../domain/records.ts';
import { sampleEndpoint } from './endpoint.fixture.ts';
import { rollbackInput, needsRelease, withVersion } from './endpoint-release.ts';

const inPlace: Partial<Endpoint>[] = [
  { name: 'other' },
  { executionTimeout: 5000 },
  { flashboot: 'FLASHBOOT' },
  { idleTimeout: 60 },
  { scalerType: 'REQUEST_COUNT' },
  { scalerValue: 9 },
  { workersMin: 1 },
  { workersMax: 9 },
  { workersStandby: 1 },
  { jobTtl: 60_000 },
  { retention: 5000 },
  { maxRetries: 0 },
  { templateId: 't' },
  { updatedAt: 9 },
];
const built: Partial<Endpoint>[] = [
  { image: 'other' },
  { args: 'x' },
  { containerDisk: 1 },
  { ports: ['80/http'] },
  { env: { A: '1' } },
  { registryId: 'r' },
  { gpuTypeIds: ['NVIDIA A40'] },
  { gpuPools: ['ADA_24'] },
  { excludedGpuTypes: ['NVIDIA A40'] },
  { gpuCount: 2 },
  { cpuFlavors: [{ id: 'cpu3c', vcpuCount: 2 }] },
  { allowedCudaVersions: ['12.8'] },
  { minCudaVersion: '12.8' },
  { dataCenterIds: ['LOCAL-1'] },
  { networkVolumeIds: ['v'] },
  { modelReferences: ['m'] },
  { compliance: ['GDPR'] },
];

test('only a change that needs new containers creates a release', () => {
  for (const change of inPlace)
    assert.equal(
      withVersion(sampleEndpoint, { ...sampleEndpoint, ...change }).version,
      0,
      JSON.stringify(change),
    );
  for (const change of built)
    assert.equal(
      withVersion(sampleEndpoint, { ...sampleEndpoint, ...change }).version,
      1,
      JSON.stringify(change),
    );
  assert.equal(
    needsRelease(
      { ...sampleEndpoint, env: { A: '1', B: '2' } },
      { ...sampleEndpoint, env: { B: '2', A: '1' } },
    ),
    false,
    'the order of variables means nothing',
  );
});

test('a rollback restores the release fields and no others', () => {
  const { settings, ...references } = rollbackInput(sampleEndpoint);
  const takenBack = (change: Partial<Endpoint>): object => {
    const changed = { ...sampleEndpoint, ...change };
    return { ...changed, ...settings(changed), ...references };
  };
  for (const change of built) assert.deepEqual(takenBack(change), sampleEndpoint, JSON.stringify(change));
  for (const change of inPlace)
    assert.deepEqual(takenBack(change), { ...sampleEndpoint, ...change }, JSON.stringify(change));
});
