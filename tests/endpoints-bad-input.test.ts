import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  A40,
  REQUEST_COUNT_SCALING,
  QUEUE_DELAY_SCALING,
  endpointInterfaces,
  GPU_ENDPOINT,
  RTX_4090,
  CPU_ENDPOINT,
} from '../packages/testing/src/endpoint-interfaces.ts';
import type { EndpointView } from '../packages/testing/src/endpoint-interfaces.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

for (const kind of DATABASES) {
  describe(`endpoints and bad input, on ${kind}`, () => {
    const fixture = serverFixture(kind);
    let ann: TestAccount;
    let templateId: string;
    const { createBaseTemplate, createVolume, createInV2, graphqlRefusal, getFromV2 } = endpointInterfaces(
      () => ({ ann, templateId }),
    );
    before(async () => {
      ann = await fixture.createAccount('ann');
      templateId = await createBaseTemplate();
    });

    test('with a mistake are refused, with the status of the interface and a word of what is wrong', async () => {
      const [one, two] = [await createVolume(), await createVolume()];
      const shared: [fields: object, v2fields: object, words: RegExp][] = [
        [{ workersMin: 5, workersMax: 2 }, { workers: { min: 5, max: 2 } }, /workersMin .*5.*workersMax .*2/],
        [
          { gpuTypeIds: ['NVIDIA Nonsense'] },
          { gpu: { pools: ['NONSENSE_1'] }, cpu: undefined },
          /does not exist here; available: /,
        ],
        [
          { computeType: 'CPU', cpuFlavorIds: ['cpu3m'] },
          { cpu: [{ id: 'cpu3m', vcpuCount: 2 }] },
          /cpu3m.*available: cpu3c/,
        ],
        [{ computeType: 'CPU', vcpuCount: 3 }, { cpu: [{ id: 'cpu3c', vcpuCount: 3 }] }, /power of two/],
        [
          { dataCenterIds: ['MOON-1'] },
          { dataCenterIds: ['MOON-1'] },
          /"MOON-1" does not exist here; available: LOCAL-1/,
        ],
        [
          { networkVolumeId: 'nosuchone' },
          { networkVolumes: ['nosuchone'] },
          /network volume "nosuchone" does not exist/,
        ],
        [{ networkVolumeIds: [one, two] }, { networkVolumes: [one, two] }, /both in LOCAL-1/],
        [{ executionTimeoutMs: 4_999 }, { timeout: 4_999 }, /5000 to 604800000, got 4999/],
      ];
      for (const [fields, v2fields, words] of shared) {
        for (const { status, text } of [
          await ann.call('POST', '/v1/endpoints', { templateId, ...fields }),
          await ann.call('POST', '/v2/serverless', { ...CPU_ENDPOINT, ...v2fields }),
        ]) {
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
        [
          422,
          { scaling: REQUEST_COUNT_SCALING, workers: { idleTimeout: 10 } },
          /\$\.workers\.idleTimeout: must not be given/,
        ],
        [422, { scaling: { type: 'QUEUE_DELAY', queueDelay: 0.4 } }, /at least 0\.5/],
        [422, { scaling: { type: 'REQUEST_COUNT' } }, /missing property 'requestCount'/],
        [422, { workers: { idleTimeout: 3601 } }, /at most 3600/],
        [422, { cpu: [] }, /at least 1 item/],
        [422, { cpu: [{ id: 'cpu3c', vcpuCount: 1 }] }, /at least 2/],
        [
          422,
          {
            cpu: [
              { id: 'cpu3c', vcpuCount: 2 },
              { id: 'cpu3c', vcpuCount: 2 },
            ],
          },
          /are equal/,
        ],
        [422, { cpu: undefined, gpu: { pools: [] } }, /at least 1 item/],
        [400, { cpu: undefined, gpu: { pools: [A40] } }, /GPU pool .* does not exist/],
        [400, { cpu: undefined, gpu: { pools: ['ADA_24'], excludedTypes: [A40] } }, /in none of the pools/],
        [400, { cpu: undefined, gpu: { pools: ['ADA_24'], excludedTypes: [RTX_4090] } }, /leave none/],
        [
          400,
          {
            cpu: undefined,
            gpu: { pools: ['ADA_24'], allowedCudaVersions: ['12.8'], minCudaVersion: '12.1' },
          },
          /exclude each other/,
        ],
        [422, { cpu: undefined, gpu: { pools: ['ADA_24'], minCudaVersion: '12' } }, /must match/],
        [400, { registry: 'nosuchone' }, /registry .* does not exist/],
        [400, { ports: ['http'] }, /port/],
        [422, { jobTtl: 1 }, /at least 10000/],
        [422, { retention: 1 }, /at least 1000/],
        [422, { maxRetries: -1 }, /at least 0/],
      ];
      for (const [wanted, fields, words] of inV2Only) {
        const { status, text } = await ann.call('POST', '/v2/serverless', { ...CPU_ENDPOINT, ...fields });
        assert.equal(status, wanted, text);
        assert.match(text, words);
      }
      assert.match(
        await graphqlRefusal({ name: 'x', templateId, workersMin: 5, workersMax: 2 }),
        /workersMin .*5.*workersMax .*2/,
      );
      assert.match(
        await graphqlRefusal({ name: 'x', templateId, scalerType: 'OTHER' }),
        /QUEUE_DELAY, REQUEST_COUNT/,
      );
      assert.match(
        await graphqlRefusal({ name: 'x', templateId, type: 'LB', scalerType: 'QUEUE_DELAY' }),
        /REQUEST_COUNT only/,
      );
      assert.match(await graphqlRefusal({ id: 'nosuchone', name: 'x' }), /not found/);
    });

    test('refuse an invalid change, and keep their state', async () => {
      const [gpu, cpu, balanced] = [
        (await ann.call<EndpointView>('POST', '/v2/serverless', GPU_ENDPOINT)).body,
        await createInV2(),
        await createInV2({
          type: 'LOAD_BALANCER',
          scaling: REQUEST_COUNT_SCALING,
          workers: { idleTimeout: 20 },
        }),
      ];
      const cases: [number, EndpointView, object, RegExp][] = [
        [400, gpu, { cpu: [{ id: 'cpu3c', vcpuCount: 2 }] }, /GPU endpoint/],
        [400, cpu, { gpu: { pools: ['ADA_24'] } }, /CPU endpoint/],
        [422, gpu, { gpu: { excludedTypes: [A40] } }, /missing property 'pools'/],
        [422, gpu, { type: 'QUEUE' }, /additional properties 'type'/],
        [400, gpu, { workers: { min: 4 } }, /workersMin .*4.*workersMax .*3/],
        [422, gpu, { scaling: REQUEST_COUNT_SCALING, workers: { idleTimeout: 5 } }, /idleTimeout/],
        [400, balanced, { scaling: QUEUE_DELAY_SCALING }, /REQUEST_COUNT only/],
        [404, { id: 'nosuchone', name: '' }, { name: 'x' }, /not found/],
      ];
      for (const [wanted, { id }, body, words] of cases) {
        const { status, text } = await ann.call('PATCH', `/v2/serverless/${id}`, body);
        assert.equal(status, wanted, text);
        assert.match(text, words);
      }
      assert.deepEqual(
        [await getFromV2(gpu.id), await getFromV2(cpu.id), await getFromV2(balanced.id)],
        [gpu, cpu, balanced],
      );
      assert.deepEqual(
        (await ann.call<EndpointView>('PATCH', `/v1/endpoints/${cpu.id}`, { gpuTypeIds: [A40] })).body[
          'gpuTypeIds'
        ],
        [],
        'v1 ignores what is said of the other kind',
      );
    });
  });
}
