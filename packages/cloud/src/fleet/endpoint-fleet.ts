import type { Worker } from '../store/fleet.ts';
import { NO_CRASHES, tellCrashes } from './crashes.ts';
import type { Crashes } from './crashes.ts';
import type { ScaledWorker } from './scaler.ts';

/** One worker as the fleet sees it now. */
export interface Member {
  record: Worker;
  busy: boolean;
  idleSince: number | null;
  /** The last checks of its health in a row that failed. */
  strikes: number;
  unhealthy: string | null;
  /** Where requests reach it, for a load balancing endpoint. */
  address: { host: string; port: number } | undefined;
  checkedAt: number;
  /** It is being asked whether it is ready. */
  asking: boolean;
  /** Since when its instance runs; null while that is being brought about. */
  runsSince: number | null;
  /** The last that its engine said about the start. */
  progress: string | null;
  /** Resolves when the start has come to an end, well or not. */
  launching: Promise<void>;
}

/** Everything about the workers of one endpoint that need not survive a restart. */
export class EndpointFleet {
  readonly endpointId: string;
  readonly members = new Map<string, Member>();
  crashes: Crashes = NO_CRASHES;
  /** Why the last start was refused; undefined when it was not. */
  refused: string | undefined;
  /** How many workers are wanted and could not be placed. */
  throttled = 0;
  /** Requests in flight and waiting, as the gateway counts them. */
  demand = 0;

  constructor(endpointId: string) {
    this.endpointId = endpointId;
  }

  add(record: Worker): Member {
    const member: Member = { record, busy: false, idleSince: null, strikes: 0, unhealthy: null, address: undefined, checkedAt: 0, asking: false, runsSince: null, progress: null, launching: Promise.resolve() };
    this.members.set(record.id, member);
    return member;
  }

  /** Somebody is there, or on the way, to take what waits. */
  get isManned(): boolean {
    return [...this.members.values()].some(({ record }) => record.state === 'ready' || record.state === 'starting');
  }

  scaled(): ScaledWorker[] {
    return [...this.members.values()].map(({ record, busy, idleSince }) => ({ id: record.id, state: record.state === 'starting' || record.state === 'ready' ? record.state : 'leaving', busy, idleSince }));
  }

  counts(): { idle: number; initializing: number; ready: number; running: number; throttled: number; unhealthy: number } {
    const live = [...this.members.values()].filter(({ record }) => record.state !== 'leaving' || record.readyAt !== null);
    const unhealthy = live.filter((member) => member.unhealthy !== null).length;
    const healthy = live.filter((member) => member.unhealthy === null);
    const running = healthy.filter(({ busy }) => busy).length;
    const initializing = healthy.filter(({ record }) => record.state === 'starting').length;
    const idle = healthy.length - running - initializing;
    return { idle, initializing, ready: idle + running, running, throttled: this.throttled, unhealthy: unhealthy + (this.crashes.count > 1 && live.length === 0 ? 1 : 0) };
  }

  /** Why there is no worker that could take a job; undefined where there is one, or none is needed. */
  reason(workersMax: number): string | undefined {
    const members = [...this.members.values()];
    if (members.some(({ record }) => record.state === 'ready')) return undefined;
    if (workersMax === 0) return 'no worker is wanted: the maximum of this endpoint is 0';
    if (this.crashes.count > 0) return tellCrashes(this.crashes);
    if (this.refused !== undefined) return `no worker can be placed: ${this.refused}`;
    const starting = members.filter(({ record }) => record.state === 'starting');
    if (starting.length > 0) {
      const progress = starting.find((member) => member.runsSince === null && member.progress !== null)?.progress;
      return `${starting.length === 1 ? 'a worker is' : `${starting.length} workers are`} starting${progress === undefined ? '' : `: ${progress}`}`;
    }
    return 'no worker wanted yet';
  }
}
