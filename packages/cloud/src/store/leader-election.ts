/** Some work is done by one server of an installation: the one that leads. */
export interface LeaderElection {
  /** Tells when this server begins to lead, and when it no longer does. */
  start(onLead: () => void, onLost: () => void): void;
  close(): Promise<void>;
}

/** One server alone leads from the start. */
export function singleServerElection(): LeaderElection {
  return { start: (onLead) => onLead(), close: async () => undefined };
}
