import type { NewPod } from '../pods/pod-input.ts';
import type { ClusterType } from './cluster-record.ts';

/** What someone asks of a new cluster. */
export interface NewCluster {
  name: string;
  type: ClusterType;
  podCount: number;
  /** What each of its pods is. */
  pod: NewPod;
}

/** How many pods one cluster may have. */
export const CLUSTER_POD_COUNT = { minimum: 2, maximum: 250 };
