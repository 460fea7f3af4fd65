import type { InstanceEngine } from '../engines/engine.ts';
import type { JobQueue } from '../jobs/queue.ts';
import type { Worker } from '../store/fleet.ts';
import type { Clock } from '../support/clock.ts';
import type { Log } from '../support/log.ts';
import type { Rounds } from '../support/rounds.ts';
import { afterCrash, endedWell, NO_CRASHES } from './crashes.ts';
import type { Member } from './member.ts';
import type { Roster } from './roster.ts';
import { tellingLine } from './telling-line.ts';

/** What a worker that is told to end has to do so. */
export const STOP_GRACE_MS = 10_000;
/** How often a worker that leaves is asked whether it is done. */
const LOOK_AGAIN_MS = 100;
const LAST_LINES = 30;
const LONGEST_REASON = 500;

export interface DeparturesParts {
  roster: Roster;
  /** Of endpoints: one whose worker ended by itself is looked at. */
  rounds: Rounds;
  queue: JobQueue;
  engines: ReadonlyMap<string, InstanceEngine>;
  /** How many requests the gateway has with a worker. */
  inFlight(endpointId: string, workerId: string): number;
  clock: Clock;
  log: Log;
}

/** How a worker came to its end. */
export interface Ending {
  exitCode?: number | null;
  reason: string | null;
  /** When it ended, where that is known better than by now. */
  at?: number | undefined;
}

/** How workers leave: let go because they are not wanted any more, or ended by themselves. */
export class Departures {
  readonly #parts: DeparturesParts;
  /** Ends about which not all is done yet. */
  readonly #underWay = new Set<{ endpointId: string; workerId: string; over: Promise<void> }>();

  constructor(parts: DeparturesParts) {
    this.#parts = parts;
  }

  /**
   * Lets a worker go: no more jobs, what it waits for ends now, it finishes what it has, and
   * only then is it told to end. A job that reached it before is done before; of one that is
   * stuck with a job that was stopped, what else it has goes back.
   */
  dismiss(member: Member, reason: string | null): Promise<void> {
    if (member.record.state !== 'leaving' && member.record.state !== 'ended')
      member.leaving = this.#letGo(member, reason);
    return member.leaving;
  }

  async #letGo(member: Member, reason: string | null): Promise<void> {
    const { record } = member;
    const { roster, queue, engines, log } = this.#parts;
    member.record = { ...record, state: 'leaving' };
    member.leavesFor = reason;
    queue.dismiss(record.endpointId, record.id);
    roster.changes.tell(record.endpointId);
    try {
      await roster.save(member);
      while (
        roster.holds(member) &&
        this.#isBusy(record) &&
        !queue.stops.isStuck(record.endpointId, record.id)
      )
        await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
      if (!roster.holds(member)) return;
      await engines.get(record.dataCenterId)?.stop(record.id, STOP_GRACE_MS);
      // Its engine may have told of its end by now, which is then written down as it was.
      if (roster.holds(member))
        await this.#track(
          member,
          this.#end(
            member,
            { reason },
            this.#isBusy(record) ? () => this.#loseJobs(record, reason) : undefined,
          ),
        );
    } catch (error) {
      log.warn({ err: error, workerId: record.id }, 'a worker could not be ended; trying again');
      member.record = { ...member.record, state: record.state };
    }
  }

  /** A worker ended by itself. Where it was not told to, that is a mishap, and the next one waits a little longer. */
  ended(member: Member, ending: Ending & { reason: string }): Promise<void> {
    return this.#track(member, this.#ended(member, ending));
  }

  async #ended(member: Member, { exitCode = null, reason, at }: Ending & { reason: string }): Promise<void> {
    const { record } = member;
    if (record.endedAt !== null) return;
    const { roster, rounds, queue, clock } = this.#parts;
    const expected =
      record.state === 'leaving' ||
      endedWell({
        exitCode,
        readyAt: record.readyAt,
        worked: this.#hasWorked(member),
        at: at ?? clock.now(),
      });
    // What its own check found says more than the last line of its log.
    const lastLine = expected
      ? ''
      : (queue.presence.view(record.endpointId, record.id)?.unhealthy ?? (await this.#lastLine(record)));
    const told = lastLine === '' ? reason : `${reason}: ${lastLine}`;
    await this.#end(member, { exitCode, reason: expected ? member.leavesFor : told, at }, () =>
      this.#loseJobs(record, (expected ? member.leavesFor : null) ?? told),
    );
    const fleet = roster.find(record.endpointId);
    if (fleet !== undefined)
      fleet.crashes = expected
        ? NO_CRASHES
        : afterCrash(fleet.crashes, {
            lastLine: lastLine === '' ? reason : lastLine,
            ran: member.runsSince !== null,
            now: clock.now(),
          });
    rounds.ask(record.endpointId);
  }

  /** It is over: its instance is cleared away, and what is left of it is its record and its log. */
  end(member: Member, ending: Ending): Promise<void> {
    return this.#track(member, this.#end(member, ending));
  }

  /** A worker is gone a moment before all is done about that. Resolves when it is: for one worker, for all of an endpoint, or for all that there are. */
  async settled(endpointId?: string, workerId?: string): Promise<void> {
    const isMeant = (one: { endpointId: string; workerId: string }): boolean =>
      one.endpointId === (endpointId ?? one.endpointId) && one.workerId === (workerId ?? one.workerId);
    await Promise.allSettled([...this.#underWay].filter(isMeant).map(({ over }) => over));
  }

  #track({ record: { endpointId, id } }: Member, over: Promise<void>): Promise<void> {
    const end = { endpointId, workerId: id, over };
    this.#underWay.add(end);
    return over.finally(() => this.#underWay.delete(end));
  }

  /** `before`: what is to be done before all that is known of it here is forgotten. */
  async #end(
    member: Member,
    { exitCode = null, reason, at = this.#parts.clock.now() }: Ending,
    before?: () => Promise<void>,
  ): Promise<void> {
    const { roster, queue, engines } = this.#parts;
    const { id, endpointId, dataCenterId } = member.record;
    member.record = { ...member.record, state: 'ended', endedAt: at, exitCode, reason };
    roster.drop(member);
    await before?.();
    queue.presence.forget(endpointId, id);
    await engines.get(dataCenterId)?.remove(id);
    await roster.save(member);
    roster.changes.tell(endpointId);
  }

  async #loseJobs({ endpointId, id }: Worker, reason: string | null): Promise<void> {
    await this.#parts.queue.caretaker.workerGone(
      endpointId,
      id,
      `the worker that ran the job ended${reason === null ? '' : `: ${reason}`}`,
    );
  }

  #hasWorked({ served, record: { endpointId, id } }: Member): boolean {
    return served || this.#parts.queue.presence.view(endpointId, id)?.worked === true;
  }

  #isBusy({ endpointId, id }: Worker): boolean {
    const { queue, inFlight } = this.#parts;
    return (queue.presence.view(endpointId, id)?.busy ?? 0) > 0 || inFlight(endpointId, id) > 0;
  }

  async #lastLine({ id, dataCenterId }: Worker): Promise<string> {
    const lines: string[] = [];
    const engine = this.#parts.engines.get(dataCenterId);
    if (engine === undefined) return '';
    for await (const { line } of engine.logs(id, { tail: LAST_LINES, source: 'container' })) lines.push(line);
    return tellingLine(lines).slice(0, LONGEST_REASON);
  }
}
