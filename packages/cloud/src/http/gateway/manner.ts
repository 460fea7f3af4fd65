/** What is behind the gateway, and how it is treated. */
export interface Manner {
  /** What it is called in sentences. */
  noun: 'worker' | 'pod';
  /** Answers name who gave them. */
  named: boolean;
  /** What has to be there in time: all of the answer, or its head. */
  dueBy: 'end' | 'head';
  /** The status that says that it was not. */
  lateStatus: 504 | 524;
}

export const WORKERS: Manner = { noun: 'worker', named: true, dueBy: 'end', lateStatus: 504 };
/** A pod's own server may stream for hours. That it says nothing at all is told with the status that its clients know. */
export const PODS: Manner = { noun: 'pod', named: false, dueBy: 'head', lateStatus: 524 };
