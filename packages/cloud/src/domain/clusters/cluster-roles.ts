import type { ClusterRole } from '../pods/pod-record.ts';
import type { ClusterType } from './cluster-record.ts';

/** What a member is, where the type of its cluster tells members apart: the first leads. */
export function clusterRole(type: ClusterType, rank: number): ClusterRole | null {
  if (type === 'SLURM') return rank === 0 ? 'SLURM_CONTROLLER' : 'SLURM_COMPUTE';
  if (type === 'RAY') return rank === 0 ? 'RAY_HEAD' : 'RAY_WORKER';
  return null;
}
