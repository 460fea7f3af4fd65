/** Late: its server has missed a heartbeat. */
export interface ReachableHost {
  address: string;
  isLate: boolean;
}

/** Away: its servers are silent, but not for long. Lost: what runs there counts as ended. */
export type HostState = { state: 'here' | 'away' | 'lost' } | ({ state: 'up' } & ReachableHost);

export interface OtherHost extends ReachableHost {
  hostId: string;
}

/** The machines of an installation, each with its own instances. */
export interface InstanceHosts {
  hostState(hostId: string): HostState;
  readonly otherHosts: readonly OtherHost[];
  findHost(instanceId: string): Promise<string | undefined>;
  /** The instances are about to be started on this machine, or this one keeps their logs from now on. */
  saveHosts(instanceIds: readonly string[]): Promise<void>;
}
