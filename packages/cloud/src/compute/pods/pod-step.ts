import type { Instance } from '../../engines/instance.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

/**
 * What is to be done about a pod now: `start` an instance; `renew` it, which is to stop the old one
 * first; `adopt` one that runs and was not written down; `stop` it; write down that it `ended`, by
 * itself or because it was told to; `remove` all of it.
 */
export type PodStep = 'nothing' | 'start' | 'renew' | 'adopt' | 'stop' | 'ended' | 'remove';

/** The label that says which generation of its pod an instance is of. */
export const GENERATION_LABEL = 'generation';

/** From what is wanted and what is. Taking a step twice does no harm. */
export function nextPodStep(pod: Pod, instance: Pick<Instance, 'status' | 'labels'> | undefined): PodStep {
  const runs = instance !== undefined && instance.status !== 'exited';
  if (pod.wanted === 'terminated') return pod.settled ? 'nothing' : 'remove';
  if (pod.wanted === 'stopped') return runs ? 'stop' : pod.settled ? 'nothing' : 'ended';
  if (runs) {
    if (instance.labels[GENERATION_LABEL] !== String(pod.generation)) return 'renew';
    return pod.settled && pod.status === 'RUNNING' && pod.instanceGeneration === pod.generation
      ? 'nothing'
      : 'adopt';
  }
  return pod.instanceGeneration === pod.generation ? 'ended' : 'start';
}
