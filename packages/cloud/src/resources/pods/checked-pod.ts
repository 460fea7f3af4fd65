import type { Pod } from '../../domain/pods/pod-record.ts';

/** Thrown inside the transaction of a check, so that nothing of it is kept. */
export class CheckedPod extends Error {
  readonly pod: Pod;
  readonly interrupted: readonly Pod[];

  constructor(pod: Pod, interrupted: readonly Pod[]) {
    super('the pod can be created');
    this.pod = pod;
    this.interrupted = interrupted;
  }
}
