import type { Steps } from './sql.ts';

/** Some work is done by one server of an installation: the leader. */
export interface LeaderElection {
  /** Called when this server becomes the leader, and when it no longer is. */
  start(onLead: () => void, onLost: () => void): void;
  /** Whether this server may act as the leader at this moment. Asked before every action on an engine. */
  isLeading(): boolean;
  /** The same, also while the lease is being renewed late. For views alone. */
  isElected(): boolean;
  /**
   * First steps of a transaction that only the leader may commit. They reject where another server leads by
   * now, and keep others from taking over before the transaction has ended.
   */
  fence(): Steps<void>;
  /** The leader may have resigned: tries at once to lead. */
  wake(): void;
  /** Hands the lead to another server and takes no part any more. The work of the leader must have ended. */
  resign(): Promise<void>;
  close(): Promise<void>;
}

/** One server alone leads from the start. */
export function singleServerElection(): LeaderElection {
  return {
    start: (onLead) => onLead(),
    isLeading: () => true,
    isElected: () => true,
    fence: function* () {},
    wake: () => undefined,
    resign: async () => undefined,
    close: async () => undefined,
  };
}
