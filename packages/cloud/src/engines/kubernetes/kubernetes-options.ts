import type { DeployedFolders } from '../deployed-folders.ts';
import type { Instance } from '../instance.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import { berthVersion } from '../../support/program-files.ts';

export interface Toleration {
  key?: string;
  operator?: 'Exists' | 'Equal';
  value?: string;
  effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
}

/** Nodes that are added when a pod waits for one. */
export interface NodePool {
  /** The GPU type of its nodes. */
  gpu: string;
  gpusPerNode: number;
  maxNodes: number;
  /** Of one node. */
  vcpu: number;
  memoryInGb: number;
}

/** How a data center uses its cluster. */
export interface ClusterSettings {
  /** Default: the service account of the cluster that this server runs in. */
  kubeconfig?: string;
  /** Default: the kubeconfig's current one. */
  context?: string;
  namespace: string;
  /** The domain of the cluster's names, for members of clusters. */
  clusterDomain: string;
  /** Only nodes with these labels. */
  nodeSelector?: Readonly<Record<string, string>>;
  tolerations?: readonly Toleration[];
  runtimeClass?: string;
  scheduler?: string;
  /** The local queue of Kueue. */
  queue?: string;
  priorityClass?: string;
  /** For pods that may be interrupted. */
  interruptiblePriorityClass?: string;
  /** The part of the wanted cores that is reserved; the limit is always the whole. */
  cpuRequestRatio: number;
  /** The same for memory: pods that use more than is reserved are the first to be evicted. */
  memoryRequestRatio: number;
  /**
   * Volumes are folders that every node has at the same path, such as an NFS share. Without it they are
   * claims.
   */
  sharedFolders: boolean;
  /** The storage classes of claims by the tier of the volume, and `default` for the rest. */
  storageClasses?: Readonly<Record<string, string>>;
  /** How claims of network volumes are mounted, where the class cannot do ReadWriteMany. */
  sharedAccessMode?: 'ReadWriteMany' | 'ReadWriteOnce';
  /** The image of Berth, for the pods that serve the files of claims. */
  berthImage: string;
  /** Tenants are closed off from each other with network policies. */
  networkPolicies: boolean;
  /**
   * Ports of pods are reached through the API server, where this server has no route to the cluster's
   * network.
   */
  portForwarding: boolean;
  /** The node label with the GPU's name. */
  gpuLabel: string;
  gpuResource: string;
  /** Node pools that are scaled on demand, maybe from zero. */
  nodePools: readonly NodePool[];
  /** How long a worker stays on a node that does not answer, from when the cluster notices it. */
  lostNodeSeconds: number;
  /** How long a pod may wait for a node. */
  scheduleTimeoutMs: number;
  /** How long a pod may take until it runs, from its creation. */
  startTimeoutMs: number;
}

export const DEFAULT_CLUSTER_SETTINGS: ClusterSettings = {
  namespace: 'berth',
  clusterDomain: 'cluster.local',
  cpuRequestRatio: 1,
  memoryRequestRatio: 1,
  sharedFolders: false,
  berthImage: `ghcr.io/berth-cloud/berth:${berthVersion()}`,
  networkPolicies: true,
  portForwarding: false,
  gpuLabel: 'nvidia.com/gpu.product',
  gpuResource: 'nvidia.com/gpu',
  nodePools: [],
  lostNodeSeconds: 30,
  scheduleTimeoutMs: 120_000,
  startTimeoutMs: 1_800_000,
};

export interface KubernetesEngineOptions extends Partial<ClusterSettings> {
  /** The data center that the cluster serves. */
  dataCenterId: string;
  /** The id of this Berth installation. Only pods with its label are managed. */
  installation: string;
  /** Makes the tokens of volume servers; all servers of the installation have the same. */
  volumeKey?: Buffer;
  /** The data folder, with the logs in a subfolder. */
  data: string;
  clock?: Clock;
  log?: Log;
  logRetentionMs?: number;
  /**
   * Whether this server manages the pods now, of several on one database. The others read what they are asked
   * for from the cluster.
   */
  isLeading?: (labels?: Instance['labels']) => boolean;
  /** Other servers manage some of the instances while this one manages others. Default: false. */
  isShared?: boolean;
  /** How it runs folders that were deployed; without it, it does not. */
  deployedFolders?: DeployedFolders | undefined;
}
