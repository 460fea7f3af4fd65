import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { InstanceSpec } from '../instance.ts';
import { type ContainerContext, containerOptions } from './container-options.ts';
import { checkSandbox } from './container-sandbox.ts';
import { readLabels, writeLabels } from './container-labels.ts';

const GB = 1024 ** 3;
const spec: InstanceSpec = {
  id: 'w1',
  labels: {},
  image: 'team/image',
  command: { entrypoint: [], cmd: [] },
  env: {},
  ports: [],
  mounts: [],
  cpu: 2,
  memoryInGb: 4,
  gpus: null,
  containerDiskInGb: 20,
};
const context: ContainerContext = {
  installation: 'here',
  network: 'account-1',
  gpus: null,
  virtual: false,
  cores: 8,
  memoryInBytes: 16 * GB,
  limitsDisk: false,
  hasInit: true,
  pythonHook: undefined,
  published: new Map(),
  isPodman: false,
};

describe('container options of an instance', () => {
  test("the command is the image's own where none is given", () => {
    const own = containerOptions(spec, context);
    assert.deepEqual(['Entrypoint' in own, 'Cmd' in own], [false, false]);
    const given = containerOptions(
      { ...spec, command: { entrypoint: ['sh', '-c'], cmd: ['echo'] } },
      context,
    );
    assert.deepEqual([given.Entrypoint, given.Cmd], [['sh', '-c'], ['echo']]);
  });

  test("a Python hook is mounted read-only and comes before the image's own Python path", () => {
    const hook = { source: '/berth/berth_worker', path: '/opt/berth/berth_worker', entry: 'accelerate/path' };
    const withHook = (env: Record<string, string>, imagePath?: string) =>
      containerOptions({ ...spec, env }, { ...context, pythonHook: { hook, imagePath } });
    assert.deepEqual(withHook({}).HostConfig?.Mounts, [
      { Type: 'bind', Source: '/berth/berth_worker', Target: '/opt/berth/berth_worker', ReadOnly: true },
    ]);
    const first = 'PYTHONPATH=/opt/berth/berth_worker/accelerate/path';
    assert.deepEqual(withHook({}).Env, [first]);
    assert.deepEqual(withHook({}, '/app').Env, [`${first}:/app`]);
    assert.deepEqual(withHook({ PYTHONPATH: '/mine' }, '/app').Env, [`${first}:/mine`]);
  });

  test('limits are capped at the resources of the machine', () => {
    const limits = containerOptions({ ...spec, cpu: 64, memoryInGb: 256 }, context).HostConfig;
    assert.deepEqual(
      [limits?.NanoCpus, limits?.Memory, limits?.MemorySwap, limits?.ShmSize],
      [8e9, 16 * GB, 16 * GB, 8 * GB],
    );
    const little = containerOptions({ ...spec, cpu: 0.5, memoryInGb: 0.1 }, context).HostConfig;
    assert.deepEqual([little?.NanoCpus, little?.ShmSize], [5e8, 64 * 1024 ** 2]);
  });

  test('a chosen public port is passed in the environment', () => {
    const ports = [
      { port: 22, protocol: 'tcp' as const, publicPortVariable: 'RUNPOD_TCP_PORT_22' },
      { port: 80, protocol: 'http' as const },
    ];
    const options = containerOptions({ ...spec, ports }, { ...context, published: new Map([[22, 20_022]]) });
    assert.deepEqual(options.HostConfig?.PortBindings, {
      '22/tcp': [{ HostIp: '127.0.0.1', HostPort: '20022' }],
      '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }],
    });
    assert.deepEqual(options.Env, ['RUNPOD_TCP_PORT_22=20022']);
  });

  test('the disk is limited if the daemon supports it', () => {
    assert.equal(containerOptions(spec, context).HostConfig?.StorageOpt, undefined);
    assert.deepEqual(containerOptions(spec, { ...context, limitsDisk: true }).HostConfig?.StorageOpt, {
      size: '20G',
    });
  });

  test('real GPUs are attached by index, virtual ones are only named in the environment', () => {
    const gpus = { typeId: 'NVIDIA L4', indexes: [1, 3] };
    const real = containerOptions(spec, { ...context, gpus });
    assert.deepEqual(real.HostConfig?.DeviceRequests, [
      { Driver: 'nvidia', DeviceIDs: ['1', '3'], Capabilities: [['gpu']] },
    ]);
    assert.deepEqual(real.Env, []);
    const virtual = containerOptions(spec, { ...context, gpus, virtual: true });
    assert.equal(virtual.HostConfig?.DeviceRequests, undefined);
    assert.deepEqual(virtual.Env, ['CUDA_VISIBLE_DEVICES=1,3', 'NVIDIA_VISIBLE_DEVICES=1,3']);
  });

  test('listenPortVariable overrides the environment, and a port is published once', () => {
    const { Env, HostConfig } = containerOptions(
      {
        ...spec,
        env: { PORT: '1', A: 'b=c' },
        ports: [
          { port: 80, protocol: 'http', listenPortVariable: 'PORT' },
          { port: 80, protocol: 'tcp' },
        ],
      },
      context,
    );
    assert.deepEqual(Env, ['PORT=80', 'A=b=c']);
    assert.deepEqual(HostConfig?.PortBindings, { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] });
  });

  test('an instance joins its network with its address and aliases', () => {
    assert.equal(containerOptions(spec, context).NetworkingConfig, undefined);
    assert.equal(containerOptions(spec, context).HostConfig?.NetworkMode, 'berth-account-1');
    const joined = containerOptions(
      {
        ...spec,
        network: { name: 'c1', subnet: '10.65.3.0/24', address: '10.65.3.2', aliases: ['w1', 'node-0'] },
      },
      { ...context, network: 'c1' },
    );
    assert.equal(joined.HostConfig?.NetworkMode, 'berth-c1');
    assert.deepEqual(joined.NetworkingConfig?.EndpointsConfig, {
      'berth-c1': { IPAMConfig: { IPv4Address: '10.65.3.2' }, Aliases: ['w1', 'node-0'] },
    });
  });

  test('a container has few capabilities, gains none, and has a limited number of processes', () => {
    const confined = containerOptions(spec, context).HostConfig;
    assert.deepEqual(
      [confined?.Privileged, confined?.SecurityOpt, confined?.CapDrop, confined?.PidsLimit],
      [false, ['no-new-privileges'], ['ALL'], 8192],
    );
    for (const name of ['NET_RAW', 'MKNOD', 'SYS_ADMIN', 'SYS_PTRACE', 'NET_ADMIN', 'SETFCAP'])
      assert.ok(!(confined?.CapAdd as string[]).includes(name), name);
    const granted = containerOptions(
      { ...spec, sandbox: { runtime: 'runsc', capabilities: ['SYS_PTRACE', 'CHOWN'], pids: 64 } },
      context,
    ).HostConfig;
    assert.deepEqual([granted?.Runtime, granted?.PidsLimit], ['runsc', 64]);
    assert.equal((granted?.CapAdd as string[]).filter((name) => name === 'CHOWN').length, 1);
    assert.ok((granted?.CapAdd as string[]).includes('SYS_PTRACE'));
  });

  test('what the daemon does not have is refused with what it has', () => {
    const security = { runtimes: ['runc'], remapsUsers: false };
    checkSandbox({}, security);
    assert.throws(() => checkSandbox({ runtime: 'runsc' }, security), /no runtime "runsc" \(it has: runc\)/);
    assert.throws(() => checkSandbox({ requireUserNamespaces: true }, security), /--userns-remap/);
    checkSandbox({ runtime: 'runc', requireUserNamespaces: true }, { ...security, remapsUsers: true });
  });

  test('labels are read back unchanged, whatever the image adds', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.string()), fc.string(), (labels, image) => {
        const written = { installation: 'here', id: 'w1', image, gpus: null, labels };
        assert.deepEqual(readLabels({ 'org.example': 'of the image', ...writeLabels(written) }), {
          ...written,
          labels: { ...labels },
        });
      }),
    );
  });
});
