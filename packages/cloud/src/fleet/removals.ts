import type { InstanceEngine } from '../engines/engine.ts';
import type { JobQueue } from '../jobs/queue.ts';
import type { FleetStore, Worker } from '../store/fleet.ts';
import type { Clock } from '../support/clock.ts';
import type { Log } from '../support/log.ts';
import type { Rounds } from '../support/rounds.ts';
import type { Departures } from './departures.ts';
import type { Member } from './member.ts';
import type { Roster } from './roster.ts';

export interface RemovalsParts {
  roster: Roster;
  departures: Departures;
  rounds: Rounds;
  queue: JobQueue;
  engines: ReadonlyMap<string, InstanceEngine>;
  store: FleetStore;
  clock: Clock;
  log: Log;
}

/** Clears away what is left of endpoints that are gone: their workers end at once, and nothing of them stays. */
export class Removals {
  readonly #parts: RemovalsParts;
  readonly #underWay = new Set<string>();

  constructor(parts: RemovalsParts) {
    this.#parts = parts;
  }

  /** Nothing is started for this endpoint any more. */
  isUnderWay(endpointId: string): boolean {
    return this.#underWay.has(endpointId);
  }

  async remove(endpointId: string): Promise<void> {
    if (this.#underWay.has(endpointId)) return;
    this.#underWay.add(endpointId);
    try {
      await this.#parts.rounds.over(endpointId);
      await this.#clear(endpointId);
    } finally {
      this.#underWay.delete(endpointId);
    }
  }

  /** The endpoint was removed, and something of it is still here: the server ended in the middle of it, or an engine was away. */
  async sweep(endpointId: string): Promise<void> {
    await this.#clear(endpointId);
    await this.#parts.queue.removeEndpoint(endpointId);
  }

  async #clear(endpointId: string): Promise<void> {
    const { roster, departures, store, clock } = this.#parts;
    await Promise.all(roster.members(endpointId).map((member) => this.#clearWorker(member)));
    // Of a worker that has just ended by itself, the instance may still be there.
    await departures.settled(endpointId);
    if (roster.members(endpointId).length > 0) return;
    roster.forget(endpointId);
    await Promise.all((await store.endedWorkers(endpointId)).map((worker) => this.#forgetLog(worker)));
    await store.removeEndpoint(endpointId, clock.now());
  }

  /** One whose engine does not answer is tried again with the next look. */
  async #clearWorker(member: Member): Promise<void> {
    const { roster, engines, log } = this.#parts;
    const { id, endpointId, dataCenterId } = member.record;
    const engine = engines.get(dataCenterId);
    try {
      // What is under way may have got past the point where it can be called back.
      await engine?.remove(id, 0);
      await member.launching;
      await engine?.remove(id, 0);
      await engine?.forgetLog(id);
      roster.drop(member);
    } catch (error) {
      log.warn(
        { err: error, endpointId, workerId: id },
        'a worker of an endpoint that is gone could not be removed; trying again',
      );
    }
  }

  /** One that cannot be removed now goes when its time is over. */
  async #forgetLog({ id, endpointId, dataCenterId }: Worker): Promise<void> {
    const { engines, log } = this.#parts;
    try {
      await engines.get(dataCenterId)?.forgetLog(id);
    } catch (error) {
      log.warn(
        { err: error, endpointId, workerId: id },
        'the log of a worker of an endpoint that is gone could not be removed',
      );
    }
  }
}
