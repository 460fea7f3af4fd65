import { SILENT_MS } from '../jobs/presence.ts';
import type { JobQueue } from '../jobs/queue.ts';
import { isRecent } from '../support/clock.ts';
import type { Departures } from './departures.ts';
import type { Member } from './member.ts';
import type { Roster } from './roster.ts';

const CHECK_EVERY_MS = 5_000;
/** Found silent so often in a row, it is let go. Not the first time: it may be this server that was away, and what workers said meanwhile is still to be read. */
const STRIKES_TO_LEAVE = 2;
const SILENT = `it has not been heard of for ${SILENT_MS / 1000} s`;

export interface QueueHealthParts {
  roster: Roster;
  departures: Departures;
  queue: JobQueue;
}

/** Knows of the workers of queue endpoints whether they are there and busy: the queue hears of them when they ask for jobs and report on them. */
export class QueueHealth {
  readonly #parts: QueueHealthParts;

  constructor(parts: QueueHealthParts) {
    this.#parts = parts;
  }

  /** Takes in what this server has heard of a worker since the last time. */
  hear(member: Member, now: number): void {
    const { endpointId, id } = member.record;
    this.#takeIn(member, this.#parts.queue.presence.view(endpointId, id), now);
  }

  /** As `hear`, with what other servers have heard of one that this server knows nothing of. One that has fallen silent is let go: it takes no job any more, and would keep another from being started for those that wait. */
  async check(member: Member, now: number): Promise<void> {
    this.hear(member, now);
    if (isRecent(member.checkedAt, CHECK_EVERY_MS, now)) return;
    member.checkedAt = now;
    const { departures, queue } = this.#parts;
    const { endpointId, id } = member.record;
    if (queue.presence.view(endpointId, id) === undefined)
      this.#takeIn(
        member,
        (await queue.workers(endpointId)).find(({ workerId }) => workerId === id),
        now,
      );
    if (member.record.state !== 'ready') return;
    member.strikes = (await queue.caretaker.isSilent(endpointId, id)) ? member.strikes + 1 : 0;
    if (member.strikes < STRIKES_TO_LEAVE) return;
    member.unhealthy = SILENT;
    void departures.dismiss(member, SILENT);
  }

  #takeIn(member: Member, seen: { busy: number; unhealthy: string | null } | undefined, now: number): void {
    const { roster, departures, queue } = this.#parts;
    const { endpointId, id } = member.record;
    if (seen === undefined) return;
    member.unhealthy = seen.unhealthy ?? (member.strikes < STRIKES_TO_LEAVE ? null : SILENT);
    if (member.record.state === 'starting') roster.becomesReady(member, now);
    const busy = seen.busy > 0;
    if (busy) member.idleSince = null;
    else if (member.busy || member.idleSince === null) member.idleSince = now;
    member.busy = busy;
    // With other jobs it is left to finish them, if it can.
    const goesOn = busy ? queue.stops.isStuck(endpointId, id) : queue.stops.isStubborn(endpointId, id);
    if (goesOn)
      void departures.dismiss(member, 'it went on with a job that was cancelled or had run out of time');
  }
}
