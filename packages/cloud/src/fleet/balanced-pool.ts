import type { Address } from '../engines/instance.ts';
import type { FleetStore } from '../store/fleet.ts';
import type { Endpoint } from '../store/records.ts';
import type { Clock } from '../support/clock.ts';
import type { Rounds } from '../support/rounds.ts';
import type { Departures } from './departures.ts';
import type { Launcher } from './launcher.ts';
import { isPresent } from './member.ts';
import { place } from './placement.ts';
import type { Removals } from './removals.ts';
import type { Roster } from './roster.ts';
import type { Sites } from './sites.ts';

export interface BalancedPoolParts {
  roster: Roster;
  rounds: Rounds;
  departures: Departures;
  removals: Removals;
  sites: Sites;
  launcher: Launcher;
  store: FleetStore;
  endpoint(id: string): Promise<Endpoint | undefined>;
  clock: Clock;
}

/** The workers of load balancing endpoints, as the gateway asks for them. */
export class BalancedPool {
  readonly #parts: BalancedPoolParts;

  constructor(parts: BalancedPoolParts) {
    this.#parts = parts;
  }

  ready(endpointId: string): (Address & { id: string })[] {
    return this.#parts.roster
      .members(endpointId)
      .flatMap(({ record, address, unhealthy }) =>
        record.state === 'ready' && address !== undefined && unhealthy === null
          ? [{ id: record.id, ...address }]
          : [],
      );
  }

  /** Whether a worker that takes no requests yet may come to. */
  exists(endpointId: string, workerId: string): boolean {
    const member = this.#parts.roster.member(endpointId, workerId);
    return member !== undefined && isPresent(member);
  }

  /** Starts a worker again, under its id, that left because it had nothing to do. False where it belongs to the past, or there is no room for it. */
  async resume(endpointId: string, workerId: string): Promise<boolean> {
    const { roster, departures, removals, sites, launcher, store } = this.#parts;
    const endpoint = await this.#parts.endpoint(endpointId);
    const leaving = roster.member(endpointId, workerId);
    if (endpoint === undefined || (leaving !== undefined && leaving.record.version !== endpoint.version))
      return false;
    // It may be on its way out just now.
    await leaving?.leaving;
    await departures.settled(endpointId, workerId);
    const left = await store.findWorker(endpointId, workerId);
    if (left === undefined || left.endedAt === null || left.version !== endpoint.version) return false;
    // While another server looks after workers, no site is connected here.
    const placement = place(endpoint, await sites.for(endpoint));
    if (removals.isUnderWay(endpointId) || this.exists(endpointId, workerId))
      return this.exists(endpointId, workerId);
    if (
      roster.member(endpointId, workerId) !== undefined ||
      roster.members(endpointId).length >= endpoint.workersMax ||
      'refused' in placement
    )
      return false;
    launcher.launch(endpoint, placement.place, workerId);
    return true;
  }

  /** How many requests there are, in flight and waiting. */
  demand(endpointId: string, requests: number): void {
    const { roster, rounds } = this.#parts;
    const fleet = roster.fleetOf(endpointId);
    const before = fleet.demand;
    fleet.demand = requests;
    if (requests > 0 && (before === 0 || !fleet.isManned)) rounds.ask(endpointId);
  }

  /** A worker was given a request, or is done with one: its idle time starts anew. */
  touched(endpointId: string, workerId: string): void {
    const member = this.#parts.roster.member(endpointId, workerId);
    if (member !== undefined) Object.assign(member, { served: true, idleSince: this.#parts.clock.now() });
  }

  waitForChange(endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    return this.#parts.roster.changes.next(endpointId, milliseconds, signal).changed;
  }
}
