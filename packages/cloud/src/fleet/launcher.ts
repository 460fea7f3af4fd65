import type { InstanceEngine } from '../engines/engine.ts';
import type { Endpoint } from '../store/records.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import type { Ids } from '../support/ids.ts';
import type { Log } from '../support/log.ts';
import type { BalancedHealth } from './balanced-health.ts';
import type { Departures } from './departures.ts';
import type { Member } from './member.ts';
import { newWorker } from './new-worker.ts';
import type { Place } from './placement.ts';
import { provide } from './provisions.ts';
import type { Provisions } from './provisions.ts';
import type { Removals } from './removals.ts';
import type { Roster } from './roster.ts';

export interface LauncherParts {
  roster: Roster;
  departures: Departures;
  removals: Removals;
  balancedHealth: BalancedHealth;
  engines: ReadonlyMap<string, InstanceEngine>;
  provisions: Provisions;
  clock: Clock;
  ids: Ids;
  log: Log;
}

/** Brings single workers about. */
export class Launcher {
  readonly #parts: LauncherParts;

  constructor(parts: LauncherParts) {
    this.#parts = parts;
  }

  /** The worker counts from now on; that it comes to run goes on by itself. */
  launch(endpoint: Endpoint, where: Place, id = this.#parts.ids.resource()): void {
    const { roster, clock, log } = this.#parts;
    const member = roster.fleetOf(endpoint.id).add(newWorker(id, endpoint, where, clock.now()));
    member.launching = this.#bringAbout(member, endpoint, where)
      .catch((error: unknown) => this.#failed(member, error))
      .catch((error: unknown) => log.error({ err: error }, 'a worker could not be started'));
  }

  /** It is written down before it is there, and what it needs is gathered meanwhile. */
  async #bringAbout(member: Member, endpoint: Endpoint, where: Place): Promise<void> {
    const { roster, removals, balancedHealth, engines, provisions, clock } = this.#parts;
    const [spec] = await Promise.all([provide(member, endpoint, where, provisions), roster.save(member)]);
    if (removals.isUnderWay(endpoint.id)) return;
    const handle = await engines.get(where.dataCenterId)?.start(spec);
    if (member.record.endedAt !== null || handle === undefined || removals.isUnderWay(endpoint.id)) return;
    member.runsSince = clock.now();
    member.record = { ...member.record, handle: JSON.stringify(handle), startedAt: member.runsSince };
    if (endpoint.type === 'LOAD_BALANCER') balancedHealth.awaitReady(member, endpoint);
    await roster.save(member);
  }

  /** That there is no room after all is nobody's mishap. */
  async #failed(member: Member, error: unknown): Promise<void> {
    const { roster, departures, removals, log } = this.#parts;
    const { id, endpointId, endedAt } = member.record;
    if (removals.isUnderWay(endpointId) || endedAt !== null || !roster.holds(member)) return;
    const reason = error instanceof Error ? error.message : String(error);
    log.info({ endpointId, workerId: id, reason }, 'a worker did not start');
    if (!(error instanceof BerthError && error.code === 'capacity'))
      return departures.ended(member, { reason });
    roster.find(endpointId)?.couldNotPlace(1, reason);
    await departures.end(member, { reason });
  }
}
