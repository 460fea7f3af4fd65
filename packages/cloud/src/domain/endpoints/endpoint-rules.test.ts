import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import type { Endpoint } from '../records.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { endpointFindings } from './endpoint-rules.ts';
import {
  type Bounds,
  EXECUTION_TIMEOUT_MS,
  GPU_COUNT,
  IDLE_TIMEOUT,
  JOB_TTL_MS,
  RETRY_COUNT,
  RETENTION_MS,
  WORKER_COUNT,
} from '../limits.ts';

const within = ({ minimum, maximum }: Bounds): fc.Arbitrary<number> =>
  fc.integer({ min: minimum, max: maximum });
const endpoint: fc.Arbitrary<Endpoint> = fc
  .record({
    name: fc.string({ minLength: 1, maxLength: 191 }).filter((name) => name.trim() !== ''),
    workers: fc.tuple(within(WORKER_COUNT), within(WORKER_COUNT)),
    workersStandby: within(WORKER_COUNT),
    idleTimeout: within(IDLE_TIMEOUT),
    scaler: fc.oneof(
      fc.record({
        type: fc.constantFrom('QUEUE' as const, 'LOAD_BALANCER' as const),
        scalerType: fc.constant('REQUEST_COUNT' as const),
        scalerValue: fc.integer({ min: 1, max: 1000 }),
      }),
      fc.record({
        type: fc.constant('QUEUE' as const),
        scalerType: fc.constant('QUEUE_DELAY' as const),
        scalerValue: fc.double({ min: 0.5, max: 1000, noNaN: true }),
      }),
    ),
    executionTimeout: fc.oneof(fc.constant(0), within(EXECUTION_TIMEOUT_MS)),
    jobTtl: within(JOB_TTL_MS),
    retention: fc.option(within(RETENTION_MS)),
    maxRetries: within(RETRY_COUNT),
    gpuCount: within(GPU_COUNT),
    minCudaVersion: fc.option(fc.constantFrom('12.8', '11.0')),
  })
  .map(({ workers: [one, other], scaler, ...fields }) => ({
    ...sampleEndpoint,
    ...fields,
    ...scaler,
    workersMin: Math.min(one, other),
    workersMax: Math.max(one, other),
  }));

/** One mistake each, and words that must name it. */
const mistakes: [Partial<Endpoint>, RegExp][] = [
  [{ name: ' ' }, /^name must not be empty/],
  [{ name: 'x'.repeat(192) }, /^name must be at most 191/],
  [{ image: '' }, /^image must/],
  [{ ports: ['http'] }, /^port "http"/],
  [{ workersMin: 4, workersMax: 3 }, /^workersMin \(workers\.min\) is 4, .* workersMax \(workers\.max\), 3$/],
  [{ workersMin: -1 }, /^workersMin .* from 0 to/],
  [{ workersMax: 1.5, workersMin: 0 }, /^workersMax .* got 1\.5/],
  [{ idleTimeout: 0 }, /^idleTimeout .* from 1 to 3600, got 0/],
  [{ idleTimeout: 3601 }, /^idleTimeout .* got 3601/],
  [{ type: 'LOAD_BALANCER', scalerType: 'QUEUE_DELAY', scalerValue: 4 }, /load balancing .* REQUEST_COUNT/],
  [{ type: 'QUEUE', scalerType: 'QUEUE_DELAY', scalerValue: 0.4 }, /queueDelay.* 0\.5 .* got 0\.4/],
  [{ scalerType: 'REQUEST_COUNT', scalerValue: 0 }, /requestCount.* from 1 to .* got 0/],
  [{ scalerType: 'REQUEST_COUNT', scalerValue: 1.5 }, /requestCount.* got 1\.5/],
  [{ executionTimeout: 4999 }, /execution timeout .* 0 for no limit, or .* from 5000 to 604800000, got 4999/],
  [{ executionTimeout: -1 }, /execution timeout .* got -1/],
  [{ jobTtl: 9999 }, /^jobTtl .* from 10000 to 604800000, got 9999/],
  [{ retention: 0 }, /^retention .* got 0/],
  [{ maxRetries: -1 }, /^maxRetries .* got -1/],
  [{ compute: 'GPU', gpuCount: 0 }, /^gpuCount .* from 1 to 1024, got 0/],
  [{ allowedCudaVersions: ['12'] }, /^CUDA version "12"/],
  [{ minCudaVersion: 'new' }, /^CUDA version "new"/],
  [{ modelReferences: ['x'.repeat(1001)] }, /at most 1000 characters/],
  [{ gpuTypeIds: Array.from({ length: 101 }, () => 'x') }, /^gpuTypeIds may have at most 100 items, got 101/],
];

describe('an endpoint', () => {
  test('within the rules has no finding', async () => {
    await checkProperty(fc.property(endpoint, (made) => assert.deepEqual(endpointFindings(made), [])));
  });

  test('with one mistake has one finding, which names it', async () => {
    await checkProperty(
      fc.property(endpoint, fc.constantFrom(...mistakes), (made, [mistake, words]) => {
        const findings = endpointFindings({ ...made, ...mistake });
        assert.equal(findings.length, 1, findings.join('\n'));
        assert.match(findings[0] ?? '', words);
      }),
      mistakes.length * 10,
    );
  });

  test('never has more workers at least than at most', async () => {
    await checkProperty(
      fc.property(within(WORKER_COUNT), within(WORKER_COUNT), (workersMin, workersMax) => {
        assert.equal(
          endpointFindings({ ...sampleEndpoint, workersMin, workersMax }).length,
          workersMin <= workersMax ? 0 : 1,
        );
      }),
    );
  });

  test('of CPU type needs no GPU', () => {
    assert.deepEqual(endpointFindings({ ...sampleEndpoint, compute: 'CPU', gpuCount: 0 }), []);
  });
});
