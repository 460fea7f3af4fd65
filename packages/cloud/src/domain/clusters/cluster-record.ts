import type { OwnedRecord } from '../records.ts';

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
  /**
   * The addresses of its network, such as 10.65.3.0/24. No other cluster has them. Null where its members are
   * reached by name.
   */
  subnet: string | null;
  updatedAt: number;
}
