import type { ClusterMembership, Pod } from '../store/pods.ts';

export interface PodSurroundings {
  /** The pod's own variables, with their secrets filled in. */
  own: Record<string, string>;
  sshKeys: readonly string[];
  jupyterPassword: string;
  /** Where its TCP ports are reached. */
  publicIp: string;
}

/** What a pod finds in its environment. What is said about the pod goes over its own variables; what is offered to it goes under. */
export function podEnvironment(pod: Pod, { own, sshKeys, jupyterPassword, publicIp }: PodSurroundings): Record<string, string> {
  return {
    ...(pod.startSsh && sshKeys.length > 0 && { PUBLIC_KEY: sshKeys.join('\n') }),
    ...(pod.startJupyter && { JUPYTER_PASSWORD: jupyterPassword }),
    ...own,
    RUNPOD_POD_ID: pod.id,
    RUNPOD_POD_HOSTNAME: pod.id,
    RUNPOD_DC_ID: pod.dataCenterId,
    RUNPOD_GPU_COUNT: String(pod.gpuCount),
    RUNPOD_CPU_COUNT: String(pod.vcpuCount),
    RUNPOD_MEM_GB: String(pod.memoryInGb),
    RUNPOD_PUBLIC_IP: publicIp,
    ...(pod.networkVolumeId !== null && { RUNPOD_VOLUME_ID: pod.networkVolumeId }),
    ...(pod.membership !== null && clusterEnvironment(pod, pod.membership)),
  };
}

/** What distributed programs look for, under both names that they know the first node by. */
function clusterEnvironment({ clusterId, gpuCount }: Pod, { rank, size, role, address, primaryAddress, primaryPort }: ClusterMembership): Record<string, string> {
  return {
    BERTH_CLUSTER_ID: clusterId ?? '',
    ...(role !== null && { BERTH_CLUSTER_ROLE: role }),
    PRIMARY_ADDR: primaryAddress,
    PRIMARY_PORT: String(primaryPort),
    MASTER_ADDR: primaryAddress,
    MASTER_PORT: String(primaryPort),
    HOST_NODE_ADDR: `${primaryAddress}:${primaryPort}`,
    NODE_ADDR: address,
    NODE_RANK: String(rank),
    NUM_NODES: String(size),
    NUM_TRAINERS: String(gpuCount),
    WORLD_SIZE: String(size * gpuCount),
  };
}
