import type { GpuUsers } from '../domain/placement/pod-interruption.ts';
import type { NetworkVolume, PageRequest } from '../domain/records.ts';
import type { Pod } from '../domain/pods/pod-record.ts';
import type { AuditedChange } from './collection.ts';

/** What the rules and the reconciler of pods need of a store. */
export interface PodStore {
  /** Holds what the pod stands on, asks `make` for it, and writes it. */
  insert(
    accountId: string,
    ids: PodReferenceIds,
    make: (references: PodReferences) => AuditedPodChange,
  ): Promise<Pod>;
  /** None that is terminated. */
  find(accountId: string, id: string): Promise<Pod | undefined>;
  /** Whoever owns it, and also one that is terminated. */
  findInAnyAccount(id: string): Promise<Pod | undefined>;
  /** Newest first, none that is terminated; all of them without a page. */
  list(accountId: string, page?: PageRequest): Promise<Pod[]>;
  /**
   * Reads the pod, asks `next` what it becomes, and writes that: no other change comes between. Undefined
   * where there is no such pod.
   */
  change(
    accountId: string,
    id: string,
    ids: PodReferenceIds,
    next: (current: Pod, references: PodReferences) => AuditedPodChange,
  ): Promise<Pod | undefined>;
  /**
   * Updates the observed state of a pod of any account. `next` returns undefined for no change. Resolves to
   * the current pod.
   */
  observe(id: string, next: (current: Pod) => Pod | undefined): Promise<Pod | undefined>;
  /**
   * Changes the price from an instant on. Where no price was known before, a running pod pays from its start.
   */
  reprice(id: string, costOf: (pod: Pod) => number, at: number, isFirst: boolean): Promise<void>;
  /** Those whose wanted state is not reached yet. */
  listUnreconciled(): Promise<string[]>;
  /** Those that may have an instance. */
  listActive(): Promise<Pod[]>;
  /** Those that a given instant has come for. */
  listDue(now: number): Promise<Pod[]>;
  /** The next such instant; null where there is none. */
  nextDueAt(): Promise<number | null>;
  /** Those that are terminated and not forgotten yet. */
  listTerminated(accountId: string): Promise<Pod[]>;
  /** Forgets pods that were terminated before this time. */
  deleteTerminated(terminatedBefore: number): Promise<void>;
}

/** What a pod is about to refer to. */
export interface PodReferenceIds {
  registryId?: string;
  volumeId?: string;
  /** Locks the placement: no other pod or worker takes hardware meanwhile. */
  needsPlacement?: true;
}

/**
 * The same, as far as the account has it. None of it can be removed before the pod is written. The GPU users
 * are empty unless `needsPlacement` is set.
 */
export interface PodReferences extends GpuUsers {
  registryFound: boolean;
  volume: NetworkVolume | undefined;
}

/** A pod that is written, and others that make room for it, all at once. */
export interface AuditedPodChange extends AuditedChange<Pod> {
  interrupted?: AuditedChange<Pod>[];
}
