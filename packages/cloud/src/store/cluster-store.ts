import type { PodReferences, PodReferenceIds } from './pod-store.ts';
import type { AuditEntry } from '../domain/records.ts';
import type { Pod } from '../domain/pods/pod-record.ts';
import type { Cluster } from '../domain/clusters/cluster-record.ts';
import type { AuditedChange } from './collection.ts';

/** What the rules of clusters ask of a store. */
export interface ClusterStore {
  /**
   * Holds what the members stand on, asks `make` for the cluster with all of them, and writes them together
   * or not at all.
   */
  insert(
    accountId: string,
    ids: PodReferenceIds,
    make: (references: ClusterReferences) => ClusterWithMembers,
  ): Promise<ClusterWithMembers>;
  find(accountId: string, id: string): Promise<Cluster | undefined>;
  /** Newest first. */
  list(accountId: string): Promise<Cluster[]>;
  /**
   * Reads the cluster, asks `next` what it becomes, and writes that. Undefined where there is no such
   * cluster.
   */
  change(
    accountId: string,
    id: string,
    next: (current: Cluster) => AuditedChange<Cluster>,
  ): Promise<Cluster | undefined>;
  /** The pods of one cluster, or of all that the account has, by rank. */
  listMembers(accountId: string, clusterId?: string): Promise<Pod[]>;
  /**
   * Asks `next` what becomes of each member, writes that, and forgets the cluster, all at once. Answers the
   * members; undefined where there is no such cluster.
   */
  remove(
    accountId: string,
    id: string,
    next: (member: Pod) => Pod,
    audit: AuditEntry,
  ): Promise<Pod[] | undefined>;
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
  /** The networks of all clusters, of every account. */
  subnets: string[];
}
