import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import type { Endpoint } from '../../domain/records.ts';
import { loadBalancerPorts, workerSpec } from './worker-spec.ts';
import type { WorkerSpecInput } from './worker-spec.ts';
import { samplePlacement } from './worker.fixture.ts';

const endpoint: Endpoint = { ...sampleEndpoint, type: 'QUEUE', ports: [], env: {}, args: '' };
const input: WorkerSpecInput = {
  endpoint,
  record: { id: 'w' },
  placement: samplePlacement,
  env: {},
  url: 'http://berth',
  token: 't',
  volume: undefined,
  artifact: undefined,
  registry: undefined,
  pythonHook: undefined,
  onProgress: () => undefined,
  onImageReady: () => undefined,
};

describe('the instance spec of a worker', () => {
  test('has the URLs of the queue with the placeholders of the worker SDK, each with a query', () => {
    const { env } = workerSpec({
      ...input,
      placement: { ...samplePlacement, gpuTypeId: 'NVIDIA A40', gpuCount: 1 },
    });
    assert.equal(env['RUNPOD_WEBHOOK_GET_JOB'], 'http://berth/v2/e/job-take/$ID?gpu=NVIDIA%20A40');
    assert.equal(
      env['RUNPOD_WEBHOOK_POST_OUTPUT'],
      'http://berth/v2/e/job-done/$RUNPOD_POD_ID/$ID?gpu=NVIDIA%20A40',
    );
    assert.equal(env['RUNPOD_AI_API_KEY'], 't');
  });

  test('has no queue URLs on a load balancing endpoint', () => {
    const { env } = workerSpec({ ...input, endpoint: { ...endpoint, type: 'LOAD_BALANCER' } });
    assert.deepEqual(
      Object.keys(env).filter((name) => name.startsWith('RUNPOD_WEBHOOK')),
      [],
    );
  });

  test('has an id that its own environment cannot change', () => {
    assert.equal(
      workerSpec({ ...input, env: { RUNPOD_POD_ID: 'another', MINE: 'x' } }).env['RUNPOD_POD_ID'],
      'w',
    );
    assert.equal(workerSpec({ ...input, env: { MINE: 'x' } }).env['MINE'], 'x');
  });

  test('mounts its volume and the directory of its code', () => {
    const { mounts, env } = workerSpec({
      ...input,
      volume: { id: 'v', folder: '/data/v', size: 5, type: 'STANDARD' },
      artifact: '/data/builds/b.tar.gz',
    });
    assert.deepEqual(mounts, [
      {
        source: '/data/v',
        path: '/runpod-volume',
        volume: { id: 'v', sizeInGb: 5, shared: true, type: 'STANDARD' },
      },
      { source: '/data/builds', path: '/data/builds', readOnly: true },
    ]);
    assert.equal(env['FLASH_BUILD_ARTIFACT_PATH'], '/data/builds/b.tar.gz');
    assert.equal(env['RUNPOD_VOLUME_ID'], 'v');
  });

  test('takes requests at the port of its environment, or else the first declared port, or else 80', () => {
    const ports = (env: Record<string, string>, declared: string[] = []): [number, number] =>
      loadBalancerPorts({ ...endpoint, env, ports: declared });
    assert.deepEqual(ports({ PORT: '5000', PORT_HEALTH: '5001' }, ['8000/http']), [5000, 5001]);
    assert.deepEqual(ports({}, ['8000/http', '9000/http']), [8000, 8000]);
    assert.deepEqual(ports({ PORT: 'x' }), [80, 80]);
    assert.deepEqual(
      workerSpec({ ...input, endpoint: { ...endpoint, type: 'LOAD_BALANCER', env: { PORT_HEALTH: '81' } } })
        .ports,
      [
        { port: 80, protocol: 'http', listenPortVariable: 'PORT' },
        { port: 81, protocol: 'http', listenPortVariable: 'PORT_HEALTH' },
      ],
    );
  });
});
