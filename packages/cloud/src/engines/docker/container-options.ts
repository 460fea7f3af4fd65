import { posix } from 'node:path';
import type { ContainerCreateOptions, HostConfig } from 'dockerode';
import type { GpuAllocation } from '../gpu-allocator.ts';
import type { InstanceSpec, PythonHook } from '../instance.ts';
import { prependPythonPath } from '../python-hook.ts';
import { parseReference } from './image-reference.ts';
import { writeLabels } from './container-labels.ts';
import { networkName } from './docker-networks.ts';
import { CONTAINER_HOST_NAME } from './container-network.ts';

const BYTES_PER_GB = 1024 ** 3;
const BILLION = 1_000_000_000;
/** Docker's own, which is too little for anything that shares memory between processes. */
const MIN_SHARED_MEMORY_BYTES = 64 * 1024 ** 2;
/** Everything is in Berth's own log soon. This is for the time when Berth is away. */
const DAEMON_LOG = { Type: 'json-file', Config: { 'max-size': '64m', 'max-file': '2' } };
/** A command in a container sees its name as RUNPOD_POD_HOSTNAME has it. */
const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

export interface ContainerContext {
  installation: string;
  gpus: GpuAllocation | null;
  /** There is no hardware behind the GPUs: they are told to the instance, not given to it. */
  virtual: boolean;
  /** What the daemon's machine has. */
  cores: number;
  memoryInBytes: number;
  /** The size of a container's disk can be limited. */
  limitsDisk: boolean;
  /** The daemon has an init process to give. */
  hasInit: boolean;
  /** By number inside, the numbers outside that were chosen; the daemon chooses the others. */
  published: ReadonlyMap<number, number>;
  /** Containers know the machine by a name of the daemon's own. */
  isPodman: boolean;
  /** The hook that comes first on the Python path, and what the image has there. */
  pythonHook: { hook: PythonHook; imagePath: string | undefined } | undefined;
}

export function containerName(id: string): string {
  return `berth-${id}`;
}

/** An instance in the words of the daemon. */
export function containerOptions(spec: InstanceSpec, ground: ContainerContext): ContainerCreateOptions {
  const { id, command } = spec;
  const ports = [...new Set(spec.ports.map(({ port }) => `${port}/tcp`))];
  return {
    name: containerName(id),
    Image: parseReference(spec.image).full,
    ...(HOST_NAME.test(id) && { Hostname: id }),
    ...(command.entrypoint.length > 0 && { Entrypoint: [...command.entrypoint] }),
    ...(command.cmd.length > 0 && { Cmd: [...command.cmd] }),
    Env: Object.entries(environment(spec, ground)).map(([name, value]) => `${name}=${value}`),
    Labels: writeLabels({ ...ground, id, image: spec.image, labels: spec.labels }),
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    ...(spec.network !== undefined && {
      NetworkingConfig: {
        EndpointsConfig: {
          [networkName(spec.network.name)]: {
            IPAMConfig: { IPv4Address: spec.network.address },
            Aliases: [...spec.network.aliases],
          },
        },
      },
    }),
    HostConfig: {
      // A free port of this machine, and not for others to reach.
      ...(spec.network !== undefined && { NetworkMode: networkName(spec.network.name) }),
      PortBindings: Object.fromEntries(
        ports.map((port) => [
          port,
          [{ HostIp: '127.0.0.1', HostPort: String(ground.published.get(Number.parseInt(port, 10)) ?? '') }],
        ]),
      ),
      Mounts: [
        ...spec.mounts.map(({ source, path }) => ({ Type: 'bind' as const, Source: source, Target: path })),
        ...hookMounts(ground),
      ],
      ...limits(spec, ground),
      ...(ground.gpus !== null &&
        !ground.virtual && {
          DeviceRequests: [
            { Driver: 'nvidia', DeviceIDs: ground.gpus.indexes.map(String), Capabilities: [['gpu']] },
          ],
        }),
      // Its first process has the duties of one: it reaps, and it can be ended by any signal.
      Init: ground.hasInit,
      RestartPolicy: { Name: 'no' },
      ...(!ground.isPodman && { ExtraHosts: [`${CONTAINER_HOST_NAME.docker}:host-gateway`] }),
      LogConfig: DAEMON_LOG,
    },
  };
}

function hookMounts({ pythonHook }: ContainerContext): NonNullable<HostConfig['Mounts']> {
  if (pythonHook === undefined) return [];
  const { source, path } = pythonHook.hook;
  return [{ Type: 'bind', Source: source, Target: path, ReadOnly: true }];
}

function environment(
  { env, ports }: InstanceSpec,
  { gpus, virtual, published, pythonHook }: ContainerContext,
): Record<string, string> {
  const announced = ports.flatMap(
    ({ port, listenPortVariable, publicPortVariable, preferSamePublicPort }) => [
      ...(listenPortVariable === undefined ? [] : [[listenPortVariable, String(port)]]),
      // One that asks for the same number is told the one inside, which it has to listen on.
      ...(publicPortVariable === undefined || preferSamePublicPort === true || !published.has(port)
        ? []
        : [[publicPortVariable, String(published.get(port))]]),
    ],
  );
  const indexes = gpus?.indexes.join(',') ?? '';
  return {
    ...env,
    ...(pythonHook !== undefined && {
      PYTHONPATH: prependPythonPath(
        posix.join(pythonHook.hook.path, pythonHook.hook.entry),
        env['PYTHONPATH'] ?? pythonHook.imagePath,
      ),
    }),
    ...Object.fromEntries(announced),
    ...(gpus !== null && virtual && { CUDA_VISIBLE_DEVICES: indexes, NVIDIA_VISIBLE_DEVICES: indexes }),
  };
}

/** A definition may ask for more than a small machine has; it gets what there is. */
function limits(
  { cpu, memoryInGb, containerDiskInGb }: InstanceSpec,
  { cores, memoryInBytes, limitsDisk }: ContainerContext,
): HostConfig {
  const memory = Math.min(Math.round(memoryInGb * BYTES_PER_GB), memoryInBytes);
  return {
    ...(cpu > 0 && { NanoCpus: Math.round(Math.min(cpu, cores) * BILLION) }),
    // Without swap: a container that is out of memory is told so and does not slow down the rest.
    ...(memory > 0 && {
      Memory: memory,
      MemorySwap: memory,
      ShmSize: Math.max(MIN_SHARED_MEMORY_BYTES, Math.floor(memory / 2)),
    }),
    ...(limitsDisk && containerDiskInGb > 0 && { StorageOpt: { size: `${containerDiskInGb}G` } }),
  };
}
