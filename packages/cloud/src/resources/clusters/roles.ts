import type { ClusterType } from '../../store/clusters.ts';
import type { ClusterRole } from '../../store/pods.ts';

/** What a member is, where the type of its cluster tells members apart: the first leads. */
export function roleOf(type: ClusterType, rank: number): ClusterRole | null {
  if (type === 'SLURM') return rank === 0 ? 'SLURM_CONTROLLER' : 'SLURM_COMPUTE';
  if (type === 'RAY') return rank === 0 ? 'RAY_HEAD' : 'RAY_WORKER';
  return null;
}
