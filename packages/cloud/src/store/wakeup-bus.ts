/**
 * A hint from one server on a database to the others that something changed, instead of polling. It carries
 * no data, and it may be lost: every waiter checks the database once more at its deadline.
 */
export type Wakeup =
  /** There are waiting jobs on this endpoint. */
  | { kind: 'queue'; endpointId: string }
  /** This job changed or streamed. */
  | { kind: 'job'; endpointId: string; seq: number }
  /** This worker shall stop a job. */
  | { kind: 'stop'; endpointId: string; workerId: string; jobId: string }
  /** This pod changed, in what is wanted of it or in what it is. */
  | { kind: 'pod'; podId: string }
  /** The server that led has resigned. */
  | { kind: 'resigned' }
  /** Some may have been missed: every waiter checks again. */
  | { kind: 'missed' }
  /** A key changed: what is remembered of keys is stale. */
  | { kind: 'forget'; what: 'keys' }
  /** An endpoint changed, or any may have; `removedFrom` is the account that it was deleted from. */
  | { kind: 'forget'; what: 'endpoints'; endpointId?: string; removedFrom?: string }
  /** A worker changed. */
  | { kind: 'worker'; endpointId: string; workerId: string }
  /** A network volume changed. */
  | { kind: 'volume'; accountId: string; volumeId: string }
  /** A limit of an account was set or removed. */
  | { kind: 'quota-limit'; accountId: string; limit: string; maximum: number | null }
  /** Much of a limit of an account is used. */
  | { kind: 'quota'; accountId: string; limit: string; ratio: number }
  /**
   * The gateway of this server has so many requests for an endpoint, of which so many are with each worker.
   */
  | { kind: 'demand'; endpointId: string; server: string; requests: number; inFlight: Record<string, number> }
  /** So many requests of this key were counted by the named rate limit. */
  | { kind: 'rate'; limit: string; key: string; used: number }
  /** This worker asked to be replaced. */
  | { kind: 'refresh'; endpointId: string; workerId: string };

export interface WakeupBus {
  publish(wakeup: Wakeup): void;
  subscribe(handler: (wakeup: Wakeup) => void): void;
  close(): Promise<void>;
}

/** For one server alone: nothing is sent. */
export const noopWakeupBus: WakeupBus = {
  publish: () => undefined,
  subscribe: () => undefined,
  close: async () => undefined,
};
