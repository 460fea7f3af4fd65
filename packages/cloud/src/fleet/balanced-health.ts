import type { Address } from '../engines/instance.ts';
import type { Worker } from '../store/fleet.ts';
import type { Endpoint } from '../store/records.ts';
import type { Clock } from '../support/clock.ts';
import type { Log } from '../support/log.ts';
import type { Member } from './endpoint-fleet.ts';
import { balancedPorts } from './worker-spec.ts';

const CHECK_EVERY_MS = 5_000;
/** A worker that starts is asked much more often, at first: requests wait for it. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;
const STRIKES = 3;
/** After so many it does not come back any more, and another takes its place. */
const STRIKES_TO_LEAVE = 6;

export type Health = 'ready' | 'starting' | 'unhealthy';

export interface BalancedHealthParts {
  /** Where a port of a worker is reached; undefined while nobody listens there. */
  address(worker: Worker, port: number): Promise<Address | undefined>;
  probe(host: string, port: number, path: string): Promise<Health>;
  /** How many requests a worker has. */
  inFlight(endpointId: string, workerId: string): number;
  /** This server still looks after the workers. */
  isLeading(): boolean;
  onReady(member: Member, now: number): void;
  /** It will not get well any more. */
  onFailing(member: Member, reason: string | null): void;
  onChanged(endpointId: string): void;
  clock: Clock;
  log: Log;
}

/** Knows of the workers of load balancing endpoints whether they take requests: it asks them. */
export class BalancedHealth {
  readonly #parts: BalancedHealthParts;

  constructor(parts: BalancedHealthParts) {
    this.#parts = parts;
  }

  /** Now and then; one that was not ready yet is asked until it is. */
  async check(member: Member, endpoint: Endpoint, now: number): Promise<void> {
    const { inFlight, onFailing, onChanged } = this.#parts;
    member.busy = inFlight(endpoint.id, member.record.id) > 0;
    if (member.address === undefined) return void this.awaitReady(member, endpoint);
    if (now - member.checkedAt < CHECK_EVERY_MS) return;
    member.checkedAt = now;
    const { state, address } = await this.#ask(member, endpoint);
    if (state === 'ready') Object.assign(member, { address, strikes: 0, unhealthy: null });
    else member.strikes += 1;
    if (member.strikes >= STRIKES) member.unhealthy = 'its health check fails';
    if (member.strikes >= STRIKES_TO_LEAVE) onFailing(member, member.unhealthy);
    onChanged(endpoint.id);
  }

  /** Asks a worker that starts, or that an earlier server started, until it is ready. */
  awaitReady(member: Member, endpoint: Endpoint): void {
    if (member.asking || member.record.handle === null) return;
    member.asking = true;
    this.#askUntilReady(member, endpoint)
      .catch((error: unknown) => this.#parts.log.warn({ err: error, workerId: member.record.id }, 'a worker could not be asked how it is; trying again'))
      .finally(() => (member.asking = false));
  }

  async #askUntilReady(member: Member, endpoint: Endpoint): Promise<void> {
    const { isLeading, onReady, onChanged, clock } = this.#parts;
    for (let pauseMs = FIRST_PAUSE_MS; isLeading() && isPresent(member); pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const { state, address } = await this.#ask(member, endpoint);
      if (state === 'ready' && isPresent(member)) {
        const now = clock.now();
        Object.assign(member, { address, checkedAt: now, idleSince: now });
        if (member.record.state === 'starting') onReady(member, now);
        return onChanged(endpoint.id);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #ask({ record }: Member, endpoint: Endpoint): Promise<{ state: Health; address?: Address }> {
    const [port, healthPort] = balancedPorts(endpoint);
    const address = await this.#parts.address(record, port);
    const asked = healthPort === port ? address : await this.#parts.address(record, healthPort);
    if (address === undefined || asked === undefined) return { state: 'unhealthy' };
    return { state: await this.#parts.probe(asked.host, asked.port, endpoint.env['HEALTH_CHECK_PATH'] ?? '/ping'), address };
  }
}

/** It takes work, or will soon. */
function isPresent({ record }: Member): boolean {
  return record.state === 'ready' || record.state === 'starting';
}
