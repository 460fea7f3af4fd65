import assert from 'node:assert/strict';
import { findViolations } from './history-checker.ts';
import type { HistoryEvent } from './job-history.ts';

/** Of each kind of fault. */
const SHOWN_VIOLATIONS = 2;
const SHOWN_EVENTS = 30;

/** Fails where the history breaks a promise, and shows what happened to the jobs concerned. */
export function assertHistorySafe(history: readonly HistoryEvent[]): void {
  const kinds = Map.groupBy(findViolations(history), ({ kind }) => kind);
  if (kinds.size === 0) return;
  const excerpts = [...kinds.values()]
    .flatMap((faults) => faults.slice(0, SHOWN_VIOLATIONS))
    .map(({ kind, id, reason }) => {
      const about = history.filter((event) => 'id' in event && event.id !== null && id.includes(event.id));
      const shown = about
        .toSorted((a, b) => timeOf(a) - timeOf(b))
        .filter((event, index, all) => !isRepeated(event, all[index - 1], all[index + 1]))
        .slice(-SHOWN_EVENTS);
      return `${kind}: ${id}: ${reason}\n${shown.map((event) => `    ${JSON.stringify(event)}`).join('\n')}`;
    });
  assert.fail(
    `${[...kinds].map(([kind, faults]) => `${kind}: ${faults.length}`).join(', ')}\n${excerpts.join('\n')}`,
  );
}

function timeOf(event: HistoryEvent): number {
  return 'at' in event ? event.at : 'from' in event ? event.from : Infinity;
}

/** An observation between two of the same. */
function isRepeated(
  event: HistoryEvent,
  before: HistoryEvent | undefined,
  after: HistoryEvent | undefined,
): boolean {
  return [before, after].every(
    (other) => event.kind === 'observation' && other?.kind === 'observation' && event.status === other.status,
  );
}
