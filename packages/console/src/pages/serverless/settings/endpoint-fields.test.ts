import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../../api/types.ts';
import {
  changedFields,
  describeChanges,
  endpointFields,
  makesRelease,
  updateBody,
} from './endpoint-fields.ts';
import { isSelected, toggleType } from './gpu-selection.ts';

const ENDPOINT: Endpoint = {
  id: 'e1',
  name: 'echo',
  type: 'QUEUE',
  requestUrls: {},
  image: 'local/echo',
  args: '',
  cmd: [],
  entrypoint: [],
  disk: 20,
  env: { A: '1', B: '2' },
  ports: ['80/http'],
  registry: 'r1',
  gpu: null,
  cpu: [{ id: 'cpu3c', vcpuCount: 2, memory: 4 }],
  workers: { min: 0, max: 3, idleTimeout: 5 },
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  dataCenterIds: ['LOCAL-1'],
  networkVolumes: [],
  timeout: 300_000,
  flashboot: 'OFF',
  accelerate: false,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
  createdAt: '2026-01-01T00:00:00Z',
};
const OPENED = endpointFields(ENDPOINT);

test('what was not changed is not sent', () => {
  assert.deepEqual(updateBody(ENDPOINT, OPENED), {});
  assert.deepEqual(updateBody(ENDPOINT, { ...OPENED, max: '7' }), { workers: { max: 7 } });
  assert.deepEqual(updateBody(ENDPOINT, { ...OPENED, env: 'export A="1"\nB=2', ports: '80' }), {});
});

test('each setting is sent as REST v2 has it', () => {
  assert.deepEqual(
    updateBody(ENDPOINT, {
      ...OPENED,
      cpu: 'cpu5c × 4, cpu3c × 2',
      dataCenters: '',
      networkVolumes: 'v1, v2',
      timeout: '0',
      retention: '60',
      registry: '',
      flashboot: 'FLASHBOOT',
    }),
    {
      cpu: [
        { id: 'cpu5c', vcpuCount: 4 },
        { id: 'cpu3c', vcpuCount: 2 },
      ],
      dataCenterIds: [],
      networkVolumes: ['v1', 'v2'],
      timeout: 0,
      retention: 60_000,
      registry: null,
      flashboot: 'FLASHBOOT',
    },
  );
  const gpu = { ...ENDPOINT, gpu: { pools: ['ADA_24'], excludedTypes: [], count: 1 } };
  assert.deepEqual(updateBody(gpu, { ...endpointFields(gpu), gpuCount: '2', excludedGpuTypes: 'L4' }), {
    gpu: { pools: ['ADA_24'], excludedTypes: ['L4'], count: 2 },
  });
});

test('another scaler has a value of its own, and no idle timeout for queues', () => {
  const draft = { ...OPENED, scaler: 'REQUEST_COUNT' as const, idleTimeout: '9', queueDelay: '1' };
  assert.deepEqual(updateBody(ENDPOINT, draft), { scaling: { type: 'REQUEST_COUNT', requestCount: 4 } });
  assert.deepEqual(changedFields(ENDPOINT, draft), ['scaler']);
});

test('what is no number is left to the server to refuse', () => {
  assert.deepEqual(updateBody(ENDPOINT, { ...OPENED, min: '', timeout: 'x' }), {
    workers: { min: null },
    timeout: null,
  });
});

test('changes are told with their old value; of variables, the names', () => {
  const draft = { ...OPENED, env: 'A=5\nC=3', timeout: '0', accelerate: true };
  assert.deepEqual(describeChanges(ENDPOINT, draft), [
    { label: 'Environment variables', from: 'A, B', to: 'A, C (new value: A)' },
    { label: 'Execution timeout in seconds', from: '300', to: 'no limit' },
    { label: 'Accelerate workers', from: 'off', to: 'on' },
  ]);
  assert.equal(makesRelease(['timeout', 'min', 'scaler']), false);
  assert.equal(makesRelease(['timeout', 'cpu']), true);
});

test('GPU types are chosen one by one, and sent as pools without some types', () => {
  const all = [
    { id: 'RTX 4090', pool: 'ADA_24' },
    { id: 'L4', pool: 'ADA_24' },
    { id: 'Odd', pool: null },
  ] as const;
  const [first, second, odd] = all;
  let selection = toggleType({ pools: [], excludedTypes: [] }, first, all);
  assert.deepEqual(selection, { pools: ['ADA_24'], excludedTypes: ['L4'] });
  selection = toggleType(selection, odd, all);
  assert.equal(isSelected(selection, odd), true);
  selection = toggleType(selection, second, all);
  assert.deepEqual(selection, { pools: ['ADA_24', 'Odd'], excludedTypes: [] });
  selection = toggleType(toggleType(selection, first, all), second, all);
  assert.deepEqual(selection, { pools: ['Odd'], excludedTypes: [] });
});
