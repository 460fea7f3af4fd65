import assert from 'node:assert/strict';
import { check } from './checker.ts';
import type { Event } from './history.ts';

/** Of each kind of fault. */
const SHOWN_FAULTS = 2;
const SHOWN_EVENTS = 30;

/** Fails where the history breaks a promise, and shows what happened to the jobs concerned. */
export function assertSafe(history: readonly Event[]): void {
  const kinds = Map.groupBy(check(history), ({ kind }) => kind);
  if (kinds.size === 0) return;
  const excerpts = [...kinds.values()]
    .flatMap((faults) => faults.slice(0, SHOWN_FAULTS))
    .map(({ kind, id, because }) => {
      const about = history.filter((event) => 'id' in event && event.id !== null && id.includes(event.id));
      const shown = about
        .toSorted((a, b) => timeOf(a) - timeOf(b))
        .filter((event, index, all) => !isRepeated(event, all[index - 1], all[index + 1]))
        .slice(-SHOWN_EVENTS);
      return `${kind}: ${id}: ${because}\n${shown.map((event) => `    ${JSON.stringify(event)}`).join('\n')}`;
    });
  assert.fail(
    `${[...kinds].map(([kind, faults]) => `${kind}: ${faults.length}`).join(', ')}\n${excerpts.join('\n')}`,
  );
}

function timeOf(event: Event): number {
  return 'at' in event ? event.at : 'from' in event ? event.from : Infinity;
}

/** An observation between two of the same. */
function isRepeated(event: Event, before: Event | undefined, after: Event | undefined): boolean {
  return [before, after].every(
    (other) => event.kind === 'observation' && other?.kind === 'observation' && event.status === other.status,
  );
}
