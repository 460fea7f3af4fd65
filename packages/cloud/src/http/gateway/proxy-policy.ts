/** The differences between proxying to workers and to pods. */
export interface ProxyPolicy {
  /** Its name in messages. */
  noun: 'worker' | 'pod';
  /** Responses name the worker. */
  addsWorkerHeader: boolean;
  /** What must arrive in time: the whole response, or its head. */
  deadlineEndsAt: 'end' | 'head';
  /** The status if it did not. */
  timeoutStatus: 504 | 524;
}

export const WORKER_PROXY_POLICY: ProxyPolicy = {
  noun: 'worker',
  addsWorkerHeader: true,
  deadlineEndsAt: 'end',
  timeoutStatus: 504,
};
/** A pod's server may stream for hours. A missing response has the status of the hosted service. */
export const POD_PROXY_POLICY: ProxyPolicy = {
  noun: 'pod',
  addsWorkerHeader: false,
  deadlineEndsAt: 'head',
  timeoutStatus: 524,
};
