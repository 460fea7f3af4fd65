/** One server of the installation. */
export interface ServerRecord {
  id: string;
  /** The same for servers on one data directory. */
  hostId: string;
  /** Where other servers reach it. */
  address: string;
  version: string;
  startedAt: number;
}

export interface ServerView extends ServerRecord {
  isLeader: boolean;
  /** Since its last sign of life, by the clock of the database. */
  silentMs: number;
}

/** What the leading server knows of the workers of an endpoint, as text; empty where there are none. */
export interface WorkerReport {
  endpointId: string;
  report: string;
}

/** What servers on one database know of each other. */
export interface ServerStore {
  /** Adds the server, or notes that it lives. Returns all servers seen in the last hour. */
  heartbeat(server: ServerRecord): Promise<ServerView[]>;
  list(): Promise<ServerView[]>;
  remove(id: string): Promise<void>;
  /** Where an instance runs; undefined if not known. */
  findHost(instanceId: string): Promise<string | undefined>;
  saveHosts(instanceIds: readonly string[], hostId: string): Promise<void>;
  /** For the leading server. */
  saveReports(reports: readonly WorkerReport[]): Promise<void>;
  /** The reports since this time, and a little before; and the time for the next call. */
  listReports(since: number): Promise<{ reports: WorkerReport[]; at: number }>;
  /** Deletes what is known of instances, endpoints and servers that are gone. */
  cleanUp(): Promise<void>;
}
