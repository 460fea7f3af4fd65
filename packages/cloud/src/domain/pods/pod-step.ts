import type { Pod } from './pod-record.ts';

/**
 * What to do about a pod now: `start` an instance; `replace` it by one of the current generation;
 * `adopt` one that runs but is not recorded; `stop` it; record that it `ended`, by itself or on
 * request; `remove` everything of it.
 */
export type PodStep = 'nothing' | 'start' | 'replace' | 'adopt' | 'stop' | 'ended' | 'remove';

/** The instance label with the generation of its pod. */
export const GENERATION_LABEL = 'generation';

/** What the rule needs to know of an instance. */
export interface PodInstanceState {
  status: 'starting' | 'running' | 'exited';
  labels: Readonly<Record<string, string>>;
}

/** The step from the actual to the desired state. Taking it twice does no harm. */
export function nextPodStep(pod: Pod, instance: PodInstanceState | undefined): PodStep {
  const runs = instance !== undefined && instance.status !== 'exited';
  if (pod.wanted === 'terminated') return pod.settled ? 'nothing' : 'remove';
  if (pod.wanted === 'stopped') return runs ? 'stop' : pod.settled ? 'nothing' : 'ended';
  if (runs) {
    if (instance.labels[GENERATION_LABEL] !== String(pod.generation)) return 'replace';
    return pod.settled && pod.status === 'RUNNING' && pod.instanceGeneration === pod.generation
      ? 'nothing'
      : 'adopt';
  }
  return pod.instanceGeneration === pod.generation ? 'ended' : 'start';
}
