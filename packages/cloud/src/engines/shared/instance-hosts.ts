import type { Instance } from '../instance.ts';

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

/** Their labels say who manages them: the leading server, or that of the shard of their endpoint. */
export type LabelledInstance = Pick<Instance, 'id' | 'labels'>;

/** The machines of an installation, each with its own instances. */
export interface InstanceHosts {
  hostState(hostId: string): HostState;
  readonly otherHosts: readonly OtherHost[];
  findHost(instanceId: string): Promise<string | undefined>;
  /**
   * The instances are about to be started on this machine, or this one keeps their logs from now on. Rejects where
   * this server does not manage them any more.
   */
  saveHosts(instances: readonly LabelledInstance[]): Promise<void>;
}
