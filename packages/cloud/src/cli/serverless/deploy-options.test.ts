import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EndpointView } from './endpoint-client.ts';
import { findEndpointIn } from './endpoint-client.ts';
import { resolveGpuChoice } from './gpu-choice.ts';
import { endpointUpdateBody, endpointCreateBody, parseDeploySettings } from './deploy-options.ts';

const nothing: Parameters<typeof parseDeploySettings>[0] = {
  type: undefined,
  gpu: undefined,
  'gpu-count': undefined,
  cpu: undefined,
  min: undefined,
  max: undefined,
  env: [],
  idle: undefined,
  port: undefined,
  registry: undefined,
  'data-center': [],
  accelerate: false,
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

describe('the request bodies of deploy', () => {
  test('--accelerate is sent only if given', () => {
    const order = parseDeploySettings({ ...nothing, accelerate: true });
    assert.equal(endpointCreateBody('app', 'i', order, undefined)['accelerate'], true);
    assert.equal(
      'accelerate' in endpointCreateBody('app', 'i', parseDeploySettings(nothing), undefined),
      false,
    );
  });

  test('a new endpoint has the defaults', () => {
    assert.deepEqual(endpointCreateBody('app', 'i', parseDeploySettings(nothing), undefined), {
      name: 'app',
      type: 'QUEUE',
      image: 'i',
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: {},
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    });
  });

  test('the maximum of workers is at least the minimum', () => {
    assert.deepEqual(
      endpointCreateBody('app', 'i', parseDeploySettings({ ...nothing, min: '5' }), undefined)['workers'],
      {
        min: 5,
        max: 5,
      },
    );
    assert.deepEqual(
      endpointCreateBody('app', 'i', parseDeploySettings({ ...nothing, min: '1' }), undefined)['workers'],
      {
        min: 1,
        max: 3,
      },
    );
  });

  test('an existing endpoint gets only the image and the given options', () => {
    assert.deepEqual(endpointUpdateBody(present, 'new', parseDeploySettings(nothing), undefined), {
      image: 'new',
    });
    const order = parseDeploySettings({
      ...nothing,
      type: 'queue',
      max: '9',
      env: ['OLD=3', 'EMPTY='],
      cpu: 'cpu5c',
    });
    assert.deepEqual(endpointUpdateBody(present, 'new', order, undefined), {
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

  test('become pools with excluded types', () => {
    assert.deepEqual(resolveGpuChoice(types, ['nvidia a40']), {
      pools: ['AMPERE_48'],
      excludedTypes: ['NVIDIA RTX A6000'],
    });
    assert.deepEqual(resolveGpuChoice(types, ['A40', 'RTX A6000']), { pools: ['AMPERE_48'] });
    assert.deepEqual(resolveGpuChoice(types, ['ampere_48', 'L4']), { pools: ['AMPERE_48', 'AMPERE_24'] });
    assert.deepEqual(resolveGpuChoice(types, ['GB10']), { pools: ['NVIDIA GB10'] });
  });

  test('that do not exist are refused with a suggestion', () => {
    assert.throws(
      () => resolveGpuChoice(types, ['A41']),
      /there is no GPU type or pool "A41"; did you mean "A40"/,
    );
    assert.throws(() => resolveGpuChoice(types, ['Nonsense']), /"Nonsense"; "berth gpu ls" lists them/);
  });

  test('that are parts of others are answered with those', () => {
    for (const word of ['6000', 'rtx-a6', 'NVIDIA RTX'])
      assert.throws(
        () => resolveGpuChoice(types, [word]),
        new RegExp(`there is no GPU type or pool "${word}"; did you mean "NVIDIA RTX A6000"\\?$`),
      );
    assert.throws(() => resolveGpuChoice(types, ['ampere']), /; did you mean "AMPERE_48" or "AMPERE_24"\?$/);
  });
});

test('an id takes precedence over a name', () => {
  const other = { ...present, id: 'e2', name: 'e1' };
  assert.equal(findEndpointIn([other, present], 'e1'), present);
  assert.equal(findEndpointIn([present], 'nobody'), undefined);
  assert.throws(
    () => findEndpointIn([present, { ...present, id: 'e3' }], 'app'),
    /2 endpoints are called "app"; name one by its id: e1, e3/,
  );
});
