import { posix } from 'node:path';
import type { ContainerOptions, HostConfig } from './client/docker-objects.ts';
import type { GpuAllocation } from '../gpu-allocator.ts';
import type { InstanceSpec, PythonHook } from '../instance.ts';
import { prependPythonPath } from '../python-hook.ts';
import { parseReference } from '../image-reference.ts';
import { writeLabels } from './container-labels.ts';
import { diskOf } from './docker-disk.ts';
import { sandboxOptions } from './container-sandbox.ts';
import { networkName } from './docker-networks.ts';
import { CONTAINER_HOST_NAME } from './container-network.ts';

const BYTES_PER_GB = 1024 ** 3;
const BILLION = 1_000_000_000;
/** Docker's default, which is too small for programs that share memory between processes. */
const MIN_SHARED_MEMORY_BYTES = 64 * 1024 ** 2;
/** Berth copies the output to its own log; this buffer is for the time when Berth is down. */
const DAEMON_LOG = { Type: 'json-file', Config: { 'max-size': '64m', 'max-file': '2' } };
/** The host name is the instance id, the value of RUNPOD_POD_HOSTNAME. */
const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

export interface ContainerContext {
  installation: string;
  /** The network it joins: its cluster's or its account's. */
  network: string;
  gpus: GpuAllocation | null;
  /** Virtual GPUs: set in the environment only, no device is attached. */
  virtual: boolean;
  /** Resources of the daemon's machine. */
  cores: number;
  memoryInBytes: number;
  /** Whether the size of a container's disk can be limited. */
  limitsDisk: boolean;
  /** Whether the daemon can provide an init process. */
  hasInit: boolean;
  /** Chosen public ports by container port; the daemon chooses the others. */
  published: ReadonlyMap<number, number>;
  /** Podman defines its own host name for the machine. */
  isPodman: boolean;
  /** The hook that comes first on PYTHONPATH, and the image's own PYTHONPATH. */
  pythonHook: { hook: PythonHook; imagePath: string | undefined } | undefined;
}

export function containerName(id: string): string {
  return `berth-${id}`;
}

/** The options to create an instance's container. */
export function containerOptions(spec: InstanceSpec, context: ContainerContext): ContainerOptions {
  const { id, command } = spec;
  const ports = [...new Set(spec.ports.map(({ port }) => `${port}/tcp`))];
  return {
    Image: parseReference(spec.image).full,
    ...(HOST_NAME.test(id) && { Hostname: id }),
    ...(command.entrypoint.length > 0 && { Entrypoint: [...command.entrypoint] }),
    ...(command.cmd.length > 0 && { Cmd: [...command.cmd] }),
    Env: Object.entries(environment(spec, context)).map(([name, value]) => `${name}=${value}`),
    Labels: writeLabels({ ...context, id, image: spec.image, disk: diskOf(spec), labels: spec.labels }),
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    ...(spec.network !== undefined && {
      NetworkingConfig: {
        EndpointsConfig: {
          [networkName(spec.network.name)]: {
            ...(spec.network.address !== null && { IPAMConfig: { IPv4Address: spec.network.address } }),
            Aliases: [...spec.network.aliases],
          },
        },
      },
    }),
    HostConfig: {
      NetworkMode: networkName(context.network),
      // Published on the loopback only, on a free port by default.
      PortBindings: Object.fromEntries(
        ports.map((port) => [
          port,
          [{ HostIp: '127.0.0.1', HostPort: String(context.published.get(Number.parseInt(port, 10)) ?? '') }],
        ]),
      ),
      Mounts: [
        ...spec.mounts.map(({ source, path }) => ({ Type: 'bind' as const, Source: source, Target: path })),
        ...hookMounts(context),
      ],
      ...limits(spec, context),
      ...sandboxOptions(spec.sandbox ?? {}),
      ...(context.gpus !== null &&
        !context.virtual && {
          DeviceRequests: [
            { Driver: 'nvidia', DeviceIDs: context.gpus.indexes.map(String), Capabilities: [['gpu']] },
          ],
        }),
      // An init process reaps zombies and makes every signal work.
      Init: context.hasInit,
      RestartPolicy: { Name: 'no' },
      ...(!context.isPodman && { ExtraHosts: [`${CONTAINER_HOST_NAME.docker}:host-gateway`] }),
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
  const portVariables = ports.flatMap(
    ({ port, listenPortVariable, publicPortVariable, preferSamePublicPort }) => [
      ...(listenPortVariable === undefined ? [] : [[listenPortVariable, String(port)]]),
      // With the same number preferred, the variable keeps the container port, which it must listen on.
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
    ...Object.fromEntries(portVariables),
    ...(gpus !== null && virtual && { CUDA_VISIBLE_DEVICES: indexes, NVIDIA_VISIBLE_DEVICES: indexes }),
  };
}

/** Requests are capped at the resources of the machine. */
function limits(
  { cpu, memoryInGb, containerDiskInGb }: InstanceSpec,
  { cores, memoryInBytes, limitsDisk }: ContainerContext,
): HostConfig {
  const memory = Math.min(Math.round(memoryInGb * BYTES_PER_GB), memoryInBytes);
  return {
    ...(cpu > 0 && { NanoCpus: Math.round(Math.min(cpu, cores) * BILLION) }),
    // No swap: a container out of memory is killed and does not slow down the rest.
    ...(memory > 0 && {
      Memory: memory,
      MemorySwap: memory,
      ShmSize: Math.max(MIN_SHARED_MEMORY_BYTES, Math.floor(memory / 2)),
    }),
    ...(limitsDisk && containerDiskInGb > 0 && { StorageOpt: { size: `${containerDiskInGb}G` } }),
  };
}
