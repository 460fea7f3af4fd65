import { memberHostName } from '../../domain/clusters/cluster-network.ts';
import type { ClusterMembership, Pod } from '../../domain/pods/pod-record.ts';

export interface PodEnvironmentInput {
  /** The pod's own variables, with their secret references resolved. */
  userVariables: Record<string, string>;
  sshKeys: readonly string[];
  jupyterPassword: string;
  /** The address at which its TCP ports are reached. */
  publicIp: string;
  /** Its own API key, and the URL at which it reaches Berth. */
  apiKey: string;
  apiUrl: string;
}

/**
 * The environment of a pod. Its own variables override the defaults offered to it, and facts about the pod
 * override those.
 */
export function podEnvironment(
  pod: Pod,
  { userVariables, sshKeys, jupyterPassword, publicIp, apiKey, apiUrl }: PodEnvironmentInput,
): Record<string, string> {
  // The pod's own keys, or else the account's.
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

/** The variables of distributed programs. The first node is called PRIMARY by some and MASTER by others. */
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
    NODE_ADDR: address ?? memberHostName(rank),
    NODE_RANK: String(rank),
    NUM_NODES: String(size),
    NUM_TRAINERS: String(gpuCount),
    WORLD_SIZE: String(size * gpuCount),
  };
}

/** The variables that point the usual clients in a pod to the Berth that runs it. */
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
