import type { ComputeType, Container, NetworkVolume, OwnedRecord, PageRequest } from '../domain/records.ts';
import type { AuditedChange } from './store.ts';

/** What the pods' rules and their keeper ask of a store. */
export interface PodStore {
  /** Holds what the pod stands on, asks `make` for it, and writes it. */
  insert(
    accountId: string,
    ids: PodReferenceIds,
    make: (footing: PodReferences) => AuditedPodChange,
  ): Promise<Pod>;
  /** None that is terminated. */
  find(accountId: string, id: string): Promise<Pod | undefined>;
  /** Whoever owns it, and also one that is terminated. */
  findInAnyAccount(id: string): Promise<Pod | undefined>;
  /** Newest first, none that is terminated; all of them without a page. */
  list(accountId: string, page?: PageRequest): Promise<Pod[]>;
  /** Reads the pod, asks `next` what it becomes, and writes that: no other change comes between. Undefined where there is no such pod. */
  change(
    accountId: string,
    id: string,
    ids: PodReferenceIds,
    next: (current: Pod, footing: PodReferences) => AuditedPodChange,
  ): Promise<Pod | undefined>;
  /** Writes what was seen of a pod, whoever owns it. `next` answers undefined to leave it. Answers the pod as it is then. */
  observe(id: string, next: (current: Pod) => Pod | undefined): Promise<Pod | undefined>;
  /** From an instant on, it costs something else. The first time of all, one that runs pays from its start. */
  reprice(id: string, costOf: (pod: Pod) => number, at: number, isFirst: boolean): Promise<void>;
  /** Those whose wanted state is not reached yet. */
  listUnreconciled(): Promise<string[]>;
  /** Those that may have an instance. */
  listActive(): Promise<Pod[]>;
  /** Those that a given instant has come for. */
  listDue(now: number): Promise<Pod[]>;
  /** The next such instant; null where there is none. */
  nextDueAt(): Promise<number | null>;
  /** Forgets pods that were terminated before this time. */
  deleteTerminated(terminatedBefore: number): Promise<void>;
}

/** What a pod is about to refer to. */
export interface PodReferenceIds {
  registryId?: string;
  volumeId?: string;
  /** It is about to take hardware: nobody else does so meanwhile. */
  needsPlacement?: true;
}

/** The same, as far as the account has it. None of it can go before the pod is written. */
export interface PodReferences {
  registryFound: boolean;
  volume: NetworkVolume | undefined;
  /** The GPUs that pods and workers have or are about to have. Empty unless it was asked for. */
  gpusInUse: GpusInUse[];
  /** Those that run and may be interrupted, whoever owns them. Empty unless it was asked for. */
  interruptible: Pod[];
  /** Those that were told to go and still have their GPUs, which `held` counts. Their places may be promised to others that it counts as well. Empty unless it was asked for. */
  stopping: Pod[];
}

/** A pod that is written, and others that make room for it, all at once. */
export interface AuditedPodChange extends AuditedChange<Pod> {
  interrupted?: AuditedChange<Pod>[];
}

export interface GpusInUse {
  dataCenterId: string;
  gpuTypeId: string;
  count: number;
}

/**
 * PROVISIONING: it has a place and waits for it. STARTING: its image is fetched and it starts.
 * EXITED: it was stopped, or ended well by itself. ERROR: it ended or failed to start without being told to.
 */
export const POD_STATUSES = ['PROVISIONING', 'STARTING', 'RUNNING', 'EXITED', 'ERROR', 'TERMINATED'] as const;
export type PodStatus = (typeof POD_STATUSES)[number];
export type CloudType = 'SECURE' | 'COMMUNITY';

export const CLUSTER_ROLES = ['SLURM_CONTROLLER', 'SLURM_COMPUTE', 'RAY_HEAD', 'RAY_WORKER'] as const;
export type ClusterRole = (typeof CLUSTER_ROLES)[number];

/** What a pod knows of its cluster. All of it is fixed when the cluster is made. */
export interface ClusterMembership {
  /** From 0, which is the cluster's first node. */
  rank: number;
  /** How many there are. */
  size: number;
  role: ClusterRole | null;
  /** Its own address in the cluster's network, and that of the first node with a port for them to meet at. */
  address: string;
  primaryAddress: string;
  primaryPort: number;
  subnet: string;
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
