import type { ComputeType, Container, OwnedRecord } from '../records.ts';

export interface GpusInUse {
  dataCenterId: string;
  gpuTypeId: string;
  count: number;
}

/**
 * PROVISIONING: it has a place and waits for it. STARTING: its image is fetched and it starts.
 * EXITED: it was stopped, or ended well by itself. ERROR: it failed to start, or ended by itself with an error.
 */
export const POD_STATUSES = ['PROVISIONING', 'STARTING', 'RUNNING', 'EXITED', 'ERROR', 'TERMINATED'] as const;

export type PodStatus = (typeof POD_STATUSES)[number];

export const CLOUD_TYPES = ['SECURE', 'COMMUNITY'] as const;
export type CloudType = (typeof CLOUD_TYPES)[number];

export const CLUSTER_ROLES = ['SLURM_CONTROLLER', 'SLURM_COMPUTE', 'RAY_HEAD', 'RAY_WORKER'] as const;

export type ClusterRole = (typeof CLUSTER_ROLES)[number];

/**
 * What a pod knows of its cluster. All of it is fixed when the cluster is made, but for an address without
 * subnet.
 */
export interface ClusterMembership {
  /** From 0, which is the cluster's first node. */
  rank: number;
  /** How many there are. */
  size: number;
  role: ClusterRole | null;
  /**
   * Its own address in the cluster's network. Without a subnet, it is that of its instance; null when there
   * is none.
   */
  address: string | null;
  /** The address or the name of the first node, and a port for them to meet at. */
  primaryAddress: string;
  primaryPort: number;
  subnet: string | null;
}

/** A rented machine. */
export interface Pod extends OwnedRecord, Container {
  name: string;
  compute: ComputeType;
  cloud: CloudType;
  /** May be stopped at any time, for a lower price. */
  interruptible: boolean;
  /** US dollars for one GPU and hour that an interruptible pod pays at most. */
  bidPerGpu: number | null;
  /** It cannot be stopped, reset or terminated. */
  locked: boolean;
  globalNetworking: boolean;
  /** The account's SSH keys are put into its environment. */
  startSsh: boolean;
  /** A password for Jupyter is put into its environment. */
  startJupyter: boolean;
  /** The template that it was made from, where the interface keeps that. */
  templateId: string | null;
  /** A disk that stays until the pod is terminated; 0 is none. */
  volumeSize: number;
  /** Where that disk or the network volume is mounted. */
  volumePath: string;
  networkVolumeId: string | null;
  /** The cluster that it belongs to, and as what. */
  clusterId: string | null;
  membership: ClusterMembership | null;

  // Its place, chosen when it is made: it stays there.
  dataCenterId: string;
  gpuTypeId: string | null;
  gpuCount: number;
  cpuFlavorId: string | null;
  vcpuCount: number;
  memoryInGb: number;
  cudaVersion: string | null;
  /** US dollars while it runs. */
  costPerHour: number;

  stopAfter: number | null;
  terminateAfter: number | null;

  wanted: 'running' | 'stopped' | 'terminated';
  /** Counts what needs a new instance: starts, restarts, edits. */
  generation: number;

  status: PodStatus;
  /** What is being done, or why it is as it is. */
  statusDetail: string | null;
  statusChangedAt: number;
  /** What is wanted is reached, or cannot be. */
  settled: boolean;
  /** What its engine finds the last instance by; null until there was one. */
  handle: string | null;
  /** The generation that this instance is of. */
  instanceGeneration: number;
  /** When this instance started and ended. */
  startedAt: number | null;
  endedAt: number | null;
  exitCode: number | null;
  updatedAt: number;
}
