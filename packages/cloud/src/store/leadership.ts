/** Some work is done by one server of an installation: the one that leads. */
export interface Leadership {
  /** Tells when this server begins to lead, and when it no longer does. */
  begin(onLead: () => void, onLost: () => void): void;
  close(): Promise<void>;
}

/** One server alone leads from the start. */
export function leadAlone(): Leadership {
  return { begin: (onLead) => onLead(), close: async () => undefined };
}
