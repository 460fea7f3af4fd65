import type { ClusterMembership, Pod } from '../../domain/pods/pod-record.ts';

export interface PodEnvironmentInput {
  /** The pod's own variables, with their secrets filled in. */
  userVariables: Record<string, string>;
  sshKeys: readonly string[];
  jupyterPassword: string;
  /** Where its TCP ports are reached. */
  publicIp: string;
  /** Its own key, and where it reaches Berth with it. */
  apiKey: string;
  apiUrl: string;
}

/** What a pod finds in its environment. What is said about the pod goes over its own variables; what is offered to it goes under. */
export function podEnvironment(
  pod: Pod,
  { userVariables, sshKeys, jupyterPassword, publicIp, apiKey, apiUrl }: PodEnvironmentInput,
): Record<string, string> {
  // The account's keys, unless the pod has some of its own.
  const publicKey = userVariables['SSH_PUBLIC_KEY'] || sshKeys.join('\n');
  return {
    ...(pod.startSsh && publicKey !== '' && { PUBLIC_KEY: publicKey }),
    ...(pod.startJupyter && { JUPYTER_PASSWORD: jupyterPassword }),
    RUNPOD_API_KEY: apiKey,
    ...clientUrlVariables(apiUrl),
    ...userVariables,
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
function clusterEnvironment(
  { clusterId, gpuCount }: Pod,
  { rank, size, role, address, primaryAddress, primaryPort }: ClusterMembership,
): Record<string, string> {
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

/** The variables by which the usual clients find the interfaces: in a pod they speak to the Berth that runs it. */
function clientUrlVariables(url: string): Record<string, string> {
  return {
    RUNPOD_API_BASE_URL: url,
    RUNPOD_API_URL: `${url}/v1`,
    RUNPOD_REST_API_URL: `${url}/v1`,
    RUNPOD_REST_V2_URL: `${url}/v2`,
    RUNPOD_GRAPHQL_URL: `${url}/graphql`,
    RUNPOD_ENDPOINT_BASE_URL: `${url}/v2`,
  };
}
