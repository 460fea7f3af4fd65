/** What is behind the gateway, and how it is treated. */
export interface ProxyPolicy {
  /** What it is called in sentences. */
  noun: 'worker' | 'pod';
  /** Answers name who gave them. */
  addsWorkerHeader: boolean;
  /** What has to be there in time: all of the answer, or its head. */
  deadlineEndsAt: 'end' | 'head';
  /** The status that says that it was not. */
  timeoutStatus: 504 | 524;
}

export const WORKER_PROXY_POLICY: ProxyPolicy = {
  noun: 'worker',
  addsWorkerHeader: true,
  deadlineEndsAt: 'end',
  timeoutStatus: 504,
};
/** A pod's own server may stream for hours. That it says nothing at all is told with the status that its clients know. */
export const POD_PROXY_POLICY: ProxyPolicy = {
  noun: 'pod',
  addsWorkerHeader: false,
  deadlineEndsAt: 'head',
  timeoutStatus: 524,
};
