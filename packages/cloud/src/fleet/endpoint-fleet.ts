import type { Worker } from '../store/fleet.ts';
import { NO_CRASHES } from './crashes.ts';
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
    const member: Member = { record, busy: false, idleSince: null, strikes: 0, unhealthy: null, address: undefined, checkedAt: 0 };
    this.members.set(record.id, member);
    return member;
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
    if (this.crashes.count > 0) return `workers end as soon as they start (${this.crashes.count} in a row); the last one said: ${this.crashes.lastLine || '(nothing)'}`;
    if (this.refused !== undefined) return `no capacity: ${this.refused}`;
    if (members.some(({ record }) => record.state === 'starting')) return `${members.length === 1 ? 'a worker is' : `${members.length} workers are`} starting`;
    return 'no worker wanted yet';
  }
}
