import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EndpointView } from './endpoints.ts';
import { pick } from './endpoints.ts';
import { gpuChoice } from './gpus.ts';
import { change, creation, readOrder } from './order.ts';

const nothing: Parameters<typeof readOrder>[0] = {
  type: undefined,
  gpu: undefined,
  'gpu-count': undefined,
  cpu: undefined,
  min: undefined,
  max: undefined,
  env: [],
  idle: undefined,
  port: undefined,
  'data-center': [],
};
const present: EndpointView = {
  id: 'e1',
  name: 'app',
  type: 'QUEUE',
  image: 'local/app:1',
  env: { KEPT: '1', OLD: '2' },
  workers: { min: 0, max: 3 },
  requestUrls: {},
};

describe('what deploy asks of the server', () => {
  test('a new endpoint has the defaults', () => {
    assert.deepEqual(creation('app', 'i', readOrder(nothing), undefined), {
      name: 'app',
      type: 'QUEUE',
      image: 'i',
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: {},
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    });
  });

  test('as many workers as are always there are also allowed', () => {
    assert.deepEqual(creation('app', 'i', readOrder({ ...nothing, min: '5' }), undefined)['workers'], {
      min: 5,
      max: 5,
    });
    assert.deepEqual(creation('app', 'i', readOrder({ ...nothing, min: '1' }), undefined)['workers'], {
      min: 1,
      max: 3,
    });
  });

  test('a present endpoint gets its image and what was said, and nothing else', () => {
    assert.deepEqual(change(present, 'new', readOrder(nothing), undefined), { image: 'new' });
    const order = readOrder({ ...nothing, type: 'queue', max: '9', env: ['OLD=3', 'EMPTY='], cpu: 'cpu5c' });
    assert.deepEqual(change(present, 'new', order, undefined), {
      image: 'new',
      workers: { max: 9 },
      cpu: [{ id: 'cpu5c', vcpuCount: 2 }],
      env: { KEPT: '1', OLD: '3', EMPTY: '' },
    });
  });
});

describe('GPUs by name', () => {
  const types = [
    { id: 'NVIDIA A40', name: 'A40', pool: 'AMPERE_48' },
    { id: 'NVIDIA RTX A6000', name: 'RTX A6000', pool: 'AMPERE_48' },
    { id: 'NVIDIA L4', name: 'L4', pool: 'AMPERE_24' },
    { id: 'NVIDIA GB10', name: 'GB10', pool: null },
  ];

  test('are pools without what was not meant', () => {
    assert.deepEqual(gpuChoice(types, ['nvidia a40']), {
      pools: ['AMPERE_48'],
      excludedTypes: ['NVIDIA RTX A6000'],
    });
    assert.deepEqual(gpuChoice(types, ['A40', 'RTX A6000']), { pools: ['AMPERE_48'] });
    assert.deepEqual(gpuChoice(types, ['ampere_48', 'L4']), { pools: ['AMPERE_48', 'AMPERE_24'] });
    assert.deepEqual(gpuChoice(types, ['GB10']), { pools: ['NVIDIA GB10'] });
  });

  test('that nobody has are refused with what is close', () => {
    assert.throws(
      () => gpuChoice(types, ['A41']),
      /there is no GPU type or pool "A41" here; did you mean "A40"/,
    );
  });
});

test('an id goes before a name', () => {
  const other = { ...present, id: 'e2', name: 'e1' };
  assert.equal(pick([other, present], 'e1'), present);
  assert.equal(pick([present], 'nobody'), undefined);
  assert.throws(
    () => pick([present, { ...present, id: 'e3' }], 'app'),
    /2 endpoints are called "app"; name one by its id: e1, e3/,
  );
});
