import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceMount, InstancePort, InstanceSpec } from '../../engines/instance.ts';
import { containerPort } from '../../domain/pods/container-port.ts';
import { memberHostName } from '../../domain/clusters/cluster-network.ts';
import { parseArgs } from '../../domain/templates/container-command.ts';
import { GENERATION_LABEL } from '../../domain/pods/pod-step.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

export interface PodSpecInput {
  env: Record<string, string>;
  mounts: InstanceMount[];
  registry: { username: string; password: string } | undefined;
  onProgress(line: string): void;
}

/** The instance spec of a pod. */
export function podSpec(
  pod: Pod,
  engine: Pick<InstanceEngine, 'capabilities'>,
  { env, mounts, registry, onProgress }: PodSpecInput,
): InstanceSpec {
  return {
    id: pod.id,
    labels: {
      kind: 'pod',
      account: pod.accountId,
      ...(pod.clusterId !== null && { cluster: pod.clusterId }),
      [GENERATION_LABEL]: String(pod.generation),
    },
    image: pod.image,
    command: parseArgs(pod.args),
    env,
    ports: pod.ports.map((entry) => portOf(entry, engine)),
    mounts,
    ...(pod.clusterId !== null &&
      pod.membership !== null && {
        network: {
          name: pod.clusterId,
          subnet: pod.membership.subnet,
          address: pod.membership.address,
          addressVariable: 'NODE_ADDR',
          aliases: [memberHostName(pod.membership.rank), pod.id],
        },
      }),
    cpu: pod.vcpuCount,
    memoryInGb: pod.memoryInGb,
    gpus:
      pod.gpuTypeId === null || pod.gpuCount === 0 ? null : { typeId: pod.gpuTypeId, count: pod.gpuCount },
    containerDiskInGb: pod.containerDisk,
    ...(pod.interruptible && { interruptible: true }),
    ...(registry !== undefined && { registry }),
    onProgress,
  };
}

/**
 * HTTP ports are reached through the gateway. For a TCP port, a variable holds the public port
 * number.
 */
function portOf(entry: string, engine: Pick<InstanceEngine, 'capabilities'>): InstancePort {
  const declared = Number.parseInt(entry, 10);
  const port = containerPort(declared, engine);
  if (entry.endsWith('/http')) return { port, protocol: 'http' };
  return {
    port,
    protocol: 'tcp',
    publicPortVariable: `RUNPOD_TCP_PORT_${declared}`,
    ...(port !== declared && { preferSamePublicPort: true }),
  };
}
