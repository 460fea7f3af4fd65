import type { FleetStore } from '../store/fleet.ts';
import { Changes } from '../support/changes.ts';
import type { Log } from '../support/log.ts';
import { EndpointFleet } from './endpoint-fleet.ts';
import type { Member } from './member.ts';

/**
 * The workers that this server looks after, by endpoint. What must survive a restart is in the
 * store as well. Empty where another server looks after them: whoever is in the middle of
 * something with a worker sees by that that it is no longer theirs to go on with.
 */
export class Roster {
  /** Tells, by endpoint, that something about its workers has changed. */
  readonly changes = new Changes();
  readonly #store: FleetStore;
  readonly #log: Log;
  readonly #fleets = new Map<string, EndpointFleet>();

  constructor(store: FleetStore, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  find(endpointId: string): EndpointFleet | undefined {
    return this.#fleets.get(endpointId);
  }

  /** As `find`, and makes it where there is none. */
  fleetOf(endpointId: string): EndpointFleet {
    let fleet = this.#fleets.get(endpointId);
    if (fleet === undefined) {
      fleet = new EndpointFleet(endpointId);
      this.#fleets.set(endpointId, fleet);
    }
    return fleet;
  }

  endpointIds(): string[] {
    return [...this.#fleets.keys()];
  }

  members(endpointId: string): Member[] {
    return [...(this.#fleets.get(endpointId)?.members.values() ?? [])];
  }

  member(endpointId: string, workerId: string): Member | undefined {
    return this.#fleets.get(endpointId)?.members.get(workerId);
  }

  /** Where only the instance is known, as an engine knows it. */
  memberOfInstance(id: string): Member | undefined {
    for (const { members } of this.#fleets.values()) {
      const member = members.get(id);
      if (member !== undefined) return member;
    }
    return undefined;
  }

  /** It is this very one that is looked after, and not one that took up its id since. */
  holds(member: Member): boolean {
    const { endpointId, id } = member.record;
    return this.member(endpointId, id) === member;
  }

  async save({ record }: Member): Promise<void> {
    await this.#store.saveWorker(record);
  }

  /** A worker that started takes work from now on. */
  becomesReady(member: Member, now: number): void {
    const { id, endpointId } = member.record;
    member.record = { ...member.record, state: 'ready', readyAt: now };
    this.save(member).catch((error: unknown) =>
      this.#log.warn({ err: error, workerId: id }, 'it could not be written down that a worker is ready'),
    );
    this.changes.tell(endpointId);
  }

  drop(member: Member): void {
    if (this.holds(member)) this.#fleets.get(member.record.endpointId)?.members.delete(member.record.id);
  }

  forget(endpointId: string): void {
    this.#fleets.delete(endpointId);
  }

  clear(): void {
    this.#fleets.clear();
  }
}
