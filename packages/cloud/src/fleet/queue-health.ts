import type { JobQueue } from '../jobs/queue.ts';
import type { Departures } from './departures.ts';
import type { Member } from './member.ts';
import type { Roster } from './roster.ts';

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

  /** Takes in what was heard of a worker since the last time. */
  check(member: Member, now: number): void {
    const { roster, departures, queue } = this.#parts;
    const { endpointId, id } = member.record;
    const seen = queue.presence.view(endpointId, id);
    if (seen === undefined) return;
    member.unhealthy = seen.unhealthy;
    if (member.record.state === 'starting') roster.becomesReady(member, now);
    const busy = seen.busy > 0;
    if (busy) member.idleSince = null;
    else if (member.busy || member.idleSince === null) member.idleSince = now;
    member.busy = busy;
    if (!busy && queue.stops.isStubborn(endpointId, id)) void departures.dismiss(member, 'it went on with a job that was cancelled or had run out of time');
  }
}
