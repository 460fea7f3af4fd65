import { signalOf } from '../exit-code.ts';
import type { GpuAllocation } from '../gpu-allocator.ts';
import type { Instance } from '../instance.ts';
import type { InspectedContainer } from './client/docker-objects.ts';
import { readLabels } from './container-labels.ts';
import { networkName } from './docker-networks.ts';

/**
 * One run of an instance, as the daemon reports it. A container runs once: the next run has a new container.
 */
export interface DockerContainer {
  /** The id of the instance. */
  id: string;
  installation: string;
  /** The daemon's id of the container. */
  containerId: string;
  instance: Instance;
  gpus: GpuAllocation | null;
  /** The container was created and never ran. */
  isNew: boolean;
  outOfMemory: boolean;
  memoryInBytes: number;
  stopSignal: string;
  /** Host ports by container port. */
  ports: ReadonlyMap<number, number>;
  /** Its own address and the host's address in its network; empty if it has none. */
  address: string;
  gateway: string;
  /** The network it joined; undefined for the default network. */
  network: string | undefined;
}

/** `toTime`: from a time by the daemon's clock. */
export function containerFromInspect(
  info: InspectedContainer,
  toTime: (at: number) => number = (at) => at,
): DockerContainer {
  const { installation, id, image, gpus, labels } = readLabels(info.Config.Labels);
  const {
    Running: running,
    StartedAt: startedAt,
    FinishedAt: finishedAt,
    Status: status,
    OOMKilled: outOfMemory,
  } = info.State;
  const isNew = status === 'created' || status === 'initialized' || status === 'configured';
  const exitCode = running || isNew ? null : info.State.ExitCode;
  const network = Object.values(info.NetworkSettings.Networks ?? {})[0];
  return {
    id,
    installation,
    containerId: info.Id,
    instance: {
      id,
      labels,
      image,
      handle: { engine: 'docker', id, state: { container: info.Id } },
      status: running ? 'running' : isNew ? 'starting' : 'exited',
      startedAt: toTime(Date.parse(startedAt)),
      // Podman's two timestamps have different precision.
      endedAt: running ? null : toTime(Math.max(Date.parse(startedAt), Date.parse(finishedAt))),
      exitCode,
      signal: signalOf(exitCode),
    },
    gpus,
    isNew,
    outOfMemory,
    memoryInBytes: info.HostConfig.Memory ?? 0,
    stopSignal: info.Config.StopSignal || 'SIGTERM',
    ports: publishedPorts(info.NetworkSettings.Ports),
    address: network?.IPAddress ?? '',
    gateway: network?.Gateway ?? '',
    network: sharedNetwork(info.HostConfig.NetworkMode),
  };
}

const NETWORK_PREFIX = networkName('');

function sharedNetwork(mode: string | undefined): string | undefined {
  return mode?.startsWith(NETWORK_PREFIX) === true ? mode.slice(NETWORK_PREFIX.length) : undefined;
}

function publishedPorts(ports: InspectedContainer['NetworkSettings']['Ports']): Map<number, number> {
  return new Map(
    Object.entries(ports ?? {}).flatMap(([inside, outside]) =>
      outside?.[0] === undefined ? [] : [[Number.parseInt(inside, 10), Number(outside[0].HostPort)]],
    ),
  );
}
