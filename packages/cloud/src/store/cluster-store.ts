import type { Pod, PodReferences, PodReferenceIds } from './pod-store.ts';
import type { AuditEntry, OwnedRecord } from '../domain/records.ts';
import type { AuditedChange } from './store.ts';

/** What the rules of clusters ask of a store. */
export interface ClusterStore {
  /** Holds what the members stand on, asks `make` for the cluster with all of them, and writes them together or not at all. */
  insert(
    accountId: string,
    ids: PodReferenceIds,
    make: (footing: ClusterReferences) => ClusterWithMembers,
  ): Promise<ClusterWithMembers>;
  find(accountId: string, id: string): Promise<Cluster | undefined>;
  /** Newest first. */
  list(accountId: string): Promise<Cluster[]>;
  /** Reads the cluster, asks `next` what it becomes, and writes that. Undefined where there is no such cluster. */
  change(
    accountId: string,
    id: string,
    next: (current: Cluster) => AuditedChange<Cluster>,
  ): Promise<Cluster | undefined>;
  /** The pods of one cluster, or of all that the account has, by rank. */
  listMembers(accountId: string, clusterId?: string): Promise<Pod[]>;
  /** Asks `next` what becomes of each member, writes that, and forgets the cluster, all at once. Answers the members; undefined where there is no such cluster. */
  remove(
    accountId: string,
    id: string,
    next: (member: Pod) => Pod,
    audit: AuditEntry,
  ): Promise<Pod[] | undefined>;
}

export const CLUSTER_TYPES = ['APPLICATION', 'TRAINING', 'SLURM', 'RAY'] as const;
export type ClusterType = (typeof CLUSTER_TYPES)[number];

/** Several pods of one shape, with one network. */
export interface Cluster extends OwnedRecord {
  name: string;
  type: ClusterType;
  gpuTypeId: string;
  gpuCountPerPod: number;
  podCount: number;
  /** The template that its pods were made from. */
  templateId: string | null;
  dataCenterId: string;
  /** The addresses of its network, such as 10.65.3.0/24. No other cluster has them. */
  subnet: string;
  updatedAt: number;
}

export interface ClusterWithMembers {
  cluster: Cluster;
  /** By rank. */
  members: Pod[];
  audit: AuditEntry;
  /** Others that make room for them. */
  interrupted?: AuditedChange<Pod>[];
}

export interface ClusterReferences extends PodReferences {
  /** The networks of all clusters there are, whoever owns them. */
  subnets: string[];
}
