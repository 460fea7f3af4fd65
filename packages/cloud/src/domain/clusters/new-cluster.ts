import type { NewPod } from '../pods/pod-input.ts';
import type { ClusterType } from './cluster-record.ts';

/** A request for a new cluster. */
export interface NewCluster {
  name: string;
  type: ClusterType;
  podCount: number;
  /** What each of its pods is. */
  pod: NewPod;
}
