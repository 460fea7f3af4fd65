import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  A40,
  A6000,
  endpointInterfaces,
  REQUEST_COUNT_SCALING,
  RTX_4090,
} from '../../packages/testing/src/endpoint-interfaces.ts';
import type { EndpointView } from '../../packages/testing/src/endpoint-interfaces.ts';
import type { TestAccount } from '../../packages/testing/src/server-fixture.ts';

/** Endpoints with every field set, made in one interface and read in all of them. */
export function wholeEndpointsSuite(
  owner: () => { ann: TestAccount; templateId: string; url: string },
): void {
  const { createVolume, createInV1, saveInGraphql, getFromV1, getFromV2, getFromGraphql } =
    endpointInterfaces(owner);

  test('made through v1 with everything, show it in every interface', async () => {
    const networkVolumeId = await createVolume();
    const fields = {
      name: 'whole',
      gpuTypeIds: [RTX_4090, A40],
      gpuCount: 2,
      dataCenterIds: ['LOCAL-1'],
      allowedCudaVersions: ['12.8', '12.6'],
      minCudaVersion: '12.1',
      networkVolumeId,
      executionTimeoutMs: 7_000,
      flashboot: true,
      idleTimeout: 77,
      scalerType: 'REQUEST_COUNT',
      scalerValue: 9,
      workersMin: 1,
      workersMax: 8,
    };
    const made = await createInV1(fields);
    assert.partialDeepStrictEqual(made, {
      ...fields,
      networkVolumeIds: [networkVolumeId],
      gpuIds: `ADA_24,AMPERE_48,-${A6000}`,
      locations: 'LOCAL-1',
      flashBootType: 'FLASHBOOT',
    });
    assert.partialDeepStrictEqual(await getFromV2(made.id), {
      name: 'whole',
      type: 'QUEUE',
      image: 'local/echo',
      args: 'run it',
      cmd: ['run', 'it'],
      disk: 7,
      env: { A: '1', B: '2' },
      ports: ['80/http'],
      gpu: {
        pools: ['ADA_24', 'AMPERE_48'],
        excludedTypes: [A6000],
        count: 2,
        allowedCudaVersions: ['12.8', '12.6'],
        minCudaVersion: '12.1',
      },
      workers: { min: 1, max: 8 },
      scaling: { type: 'REQUEST_COUNT', requestCount: 9 },
      dataCenterIds: ['LOCAL-1'],
      networkVolumes: [networkVolumeId],
      timeout: 7_000,
      flashboot: 'FLASHBOOT',
    });
    assert.partialDeepStrictEqual(await getFromGraphql(made.id), {
      name: 'whole',
      type: 'QB',
      gpuIds: `ADA_24,AMPERE_48,-${A6000}`,
      gpuCount: 2,
      allowedCudaVersions: '12.8,12.6',
      minCudaVersion: '12.1',
      locations: 'LOCAL-1',
      networkVolumeId,
      networkVolume: { id: networkVolumeId, dataCenterId: 'LOCAL-1' },
      networkVolumeIds: [{ networkVolumeId, dataCenterId: 'LOCAL-1' }],
      executionTimeoutMs: 7_000,
      flashBootType: 'FLASHBOOT',
      idleTimeout: 77,
      scalerType: 'REQUEST_COUNT',
      scalerValue: 9,
      workersMin: 1,
      workersMax: 8,
    });
  });

  test('made through v2 with everything, show it in every interface', async () => {
    const { ann, url } = owner();
    const [networkVolume, { body: registry }] = [
      await createVolume(),
      await ann.call<EndpointView>('POST', '/v2/registries', { name: 'hub', username: 'u', password: 'p' }),
    ];
    const fields = {
      name: 'whole',
      type: 'LOAD_BALANCER',
      image: 'example/server:1',
      entrypoint: ['sh', '-c'],
      cmd: ['a b'],
      disk: 3,
      env: { PORT: '80', HEALTH_CHECK_PATH: '/up' },
      ports: ['80/http'],
      registry: registry.id,
      gpu: {
        pools: ['AMPERE_48', 'ADA_24'],
        excludedTypes: [A40],
        count: 4,
        allowedCudaVersions: [],
        minCudaVersion: '12.1',
      },
      workers: { min: 2, max: 5, idleTimeout: 44 },
      scaling: REQUEST_COUNT_SCALING,
      dataCenterIds: ['LOCAL-1'],
      networkVolumes: [networkVolume],
      timeout: 0,
      flashboot: 'PRIORITY_FLASHBOOT',
      jobTtl: 60_000,
      retention: 5_000,
      maxRetries: 3,
    };
    const { status, body: made } = await ann.call<EndpointView>('POST', '/v2/serverless', fields);
    assert.equal(status, 201);
    assert.partialDeepStrictEqual(made, {
      ...fields,
      args: '{"entrypoint":["sh","-c"],"cmd":["a b"]}',
      requestUrls: {
        base: `${url}/v2/${made.id}`,
        health: `${url}/v2/${made.id}/up`,
      },
    });
    const inV1 = await getFromV1(made.id);
    assert.equal('templateId' in inV1, false);
    assert.partialDeepStrictEqual(inV1, {
      gpuTypeIds: [A6000, RTX_4090],
      gpuIds: `AMPERE_48,ADA_24,-${A40}`,
      gpuCount: 4,
      minCudaVersion: '12.1',
      dataCenterIds: ['LOCAL-1'],
      networkVolumeIds: [networkVolume],
      env: fields.env,
      executionTimeoutMs: 0,
      idleTimeout: 44,
      scalerType: 'REQUEST_COUNT',
      scalerValue: 2,
      workersMin: 2,
      workersMax: 5,
      flashboot: true,
      flashBootType: 'PRIORITY_FLASHBOOT',
    });
    const { body: withTemplate } = await ann.call<EndpointView>(
      'GET',
      `/v1/endpoints/${made.id}?includeTemplate=true`,
    );
    assert.partialDeepStrictEqual(withTemplate['template'], {
      imageName: 'example/server:1',
      dockerEntrypoint: ['sh', '-c'],
      containerDiskInGb: 3,
      containerRegistryAuthId: registry.id,
      isServerless: true,
    });
    assert.partialDeepStrictEqual(await getFromGraphql(made.id), {
      type: 'LB',
      gpuIds: `AMPERE_48,ADA_24,-${A40}`,
      flashBootType: 'PRIORITY_FLASHBOOT',
      executionTimeoutMs: 0,
      template: { imageName: 'example/server:1' },
    });
    assert.equal((await ann.call('DELETE', `/v2/registries/${registry.id}`)).status, 204);
    assert.equal((await getFromV2(made.id))['registry'], null);
  });

  test('made through GraphQL with everything, show it in every interface', async () => {
    const networkVolumeId = await createVolume();
    const input = {
      name: 'whole',
      templateId: owner().templateId,
      gpuIds: `AMPERE_48,-${A40},NVIDIA GeForce RTX 3070`,
      gpuCount: 2,
      type: 'LB',
      allowedCudaVersions: '12.8, 12.6',
      minCudaVersion: '12.1',
      locations: 'LOCAL-1,US',
      compliance: ['GDPR'],
      networkVolumeIds: [{ networkVolumeId, dataCenterId: 'LOCAL-1' }],
      env: [
        { key: 'B', value: 'mine' },
        { key: 'C', value: '' },
      ],
      idleTimeout: 33,
      executionTimeoutMs: 9_000,
      scalerType: 'REQUEST_COUNT',
      scalerValue: 6,
      workersMin: 1,
      workersMax: 2,
      workersStandby: 1,
      flashBootType: 'FLASHBOOT',
      modelReferences: ['https://huggingface.co/org/model'],
    };
    const made = await saveInGraphql(input);
    const env = [
      { key: 'A', value: '1' },
      { key: 'B', value: 'mine' },
      { key: 'C', value: '' },
    ];
    assert.partialDeepStrictEqual(made, {
      ...input,
      gpuIds: `AMPERE_48,NVIDIA GeForce RTX 3070,-${A40}`,
      allowedCudaVersions: '12.8,12.6',
      env,
      networkVolumeId,
    });
    assert.partialDeepStrictEqual(await getFromV1(made.id), {
      gpuTypeIds: ['NVIDIA GeForce RTX 3070', A6000],
      locations: 'LOCAL-1,US',
      dataCenterIds: ['LOCAL-1'],
      env: { A: '1', B: 'mine', C: '' },
      modelReferences: input.modelReferences,
    });
    assert.partialDeepStrictEqual(await getFromV2(made.id), {
      type: 'LOAD_BALANCER',
      gpu: { pools: ['AMPERE_48', 'NVIDIA GeForce RTX 3070'], excludedTypes: [A40] },
      scaling: { type: 'REQUEST_COUNT', requestCount: 6 },
    });
  });
}
