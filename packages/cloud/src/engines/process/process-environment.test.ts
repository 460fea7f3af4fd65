import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import type { GpuAllocation } from '../gpu-allocator.ts';
import type { InstancePort, PythonHook } from '../instance.ts';
import { buildEnvironment, namesInvalidInShell } from './process-environment.ts';
import { InstanceFolder } from './instance-folder.ts';

const folder = new InstanceFolder('/data/instances/one');

function environment(
  env: Record<string, string>,
  declared: InstancePort[] = [],
  gpus: GpuAllocation | null = null,
  realGpus = false,
  pythonHook?: PythonHook,
  python?: string,
  pythonWorkerFolder?: string,
): Record<string, string> {
  const ports = declared.map(({ port }, index) => ({ port, hostPort: 20_000 + index }));
  return buildEnvironment({
    spec: { env, ports: declared },
    pythonHook,
    pythonWorkerFolder,
    folder,
    python,
    ports,
    gpus,
    realGpus,
  });
}

describe('the environment of an instance', () => {
  test('has the variables of the spec and a few of the host', () => {
    const { PATH, LANG, ...rest } = environment({ NAME: 'value' });
    assert.ok(PATH?.startsWith(`${dirname(process.execPath)}:`));
    assert.ok(LANG);
    assert.deepEqual(rest, { NAME: 'value', HOME: folder.root, TMPDIR: folder.tmp, BERTH_ROOT: folder.root });
  });

  test('the spec overrides defaults, but not BERTH_ROOT', () => {
    const env = environment({ HOME: '/elsewhere', PORT: '80', BERTH_ROOT: '/wrong' }, [
      { port: 8000, protocol: 'http' },
    ]);
    assert.deepEqual([env['HOME'], env['PORT'], env['BERTH_ROOT']], ['/elsewhere', '80', folder.root]);
  });

  test('PYTHONPATH starts with the hook and keeps the value of the spec', () => {
    const hook = { source: '/berth/berth_worker', path: '/opt/berth/berth_worker', entry: 'accelerate/path' };
    const pythonPath = (env: Record<string, string>) => environment(env, [], null, false, hook)['PYTHONPATH'];
    assert.equal(pythonPath({}), '/berth/berth_worker/accelerate/path');
    assert.equal(pythonPath({ PYTHONPATH: '/mine:/app' }), '/berth/berth_worker/accelerate/path:/mine:/app');
    assert.equal(environment({ PYTHONPATH: '/mine' })['PYTHONPATH'], '/mine');
  });

  test('PYTHONPATH ends with the folder of the Python SDK', () => {
    const hook = { source: '/berth/berth_worker', path: '/opt/berth/berth_worker', entry: 'accelerate/path' };
    const pythonPath = (env: Record<string, string>, withHook?: PythonHook) =>
      environment(env, [], null, false, withHook, undefined, '/berth')['PYTHONPATH'];
    assert.equal(pythonPath({}), '/berth');
    assert.equal(pythonPath({ PYTHONPATH: '/mine' }), '/mine:/berth');
    assert.equal(
      pythonPath({ PYTHONPATH: '/mine' }, hook),
      '/berth/berth_worker/accelerate/path:/mine:/berth',
    );
  });

  test('the programs of a Python environment come first, also before those of the spec', () => {
    const python = (env: Record<string, string>) => environment(env, [], null, false, undefined, '/env');
    const { PATH, VIRTUAL_ENV, PYTHONPYCACHEPREFIX } = python({});
    assert.ok(PATH?.startsWith(`/env/bin:${dirname(process.execPath)}:`), PATH);
    assert.deepEqual([VIRTUAL_ENV, PYTHONPYCACHEPREFIX], ['/env', '/env/pycache']);
    assert.equal(python({ PATH: '/mine' })['PATH'], '/env/bin:/mine');
    assert.equal('VIRTUAL_ENV' in environment({}), false);
  });

  test('every port has a variable, and the first HTTP port is PORT', () => {
    const env = environment({}, [
      { port: 22, protocol: 'tcp' },
      { port: 8888, protocol: 'http' },
      { port: 70001, protocol: 'tcp' },
    ]);
    assert.deepEqual(
      [env['BERTH_PORT_22'], env['RUNPOD_TCP_PORT_22'], env['PORT'], env['RUNPOD_TCP_PORT_70001']],
      ['20000', '20000', '20001', '20002'],
    );
  });

  test('listenPortVariable overrides the variables of the spec', () => {
    const env = environment({ PORT: '80', PORT_HEALTH: '81' }, [
      { port: 80, protocol: 'http', listenPortVariable: 'PORT' },
      { port: 81, protocol: 'http', listenPortVariable: 'PORT_HEALTH' },
    ]);
    assert.deepEqual([env['PORT'], env['PORT_HEALTH']], ['20000', '20001']);
  });

  test('only the allocated GPUs are visible', () => {
    const { CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER } = environment(
      {},
      [],
      { typeId: 'A', indexes: [1, 3] },
      true,
    );
    assert.deepEqual(
      [CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER],
      ['1,3', '1,3', 'PCI_BUS_ID'],
    );
    assert.deepEqual(
      [
        environment({}, [], null, true)['CUDA_VISIBLE_DEVICES'],
        environment({}, [], null, false)['CUDA_VISIBLE_DEVICES'],
      ],
      ['', undefined],
    );
  });

  test('finds the names that a shell does not pass on', () => {
    assert.deepEqual(
      namesInvalidInShell({ plain: '', _x1: '', 'dotted.name': '', '1st': '', 'a-b': '' }).sort(),
      ['1st', 'a-b', 'dotted.name'],
    );
  });
});
