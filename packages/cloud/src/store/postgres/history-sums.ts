import { historyDeltas } from '../../domain/history/job-history.ts';
import type { HistoryDelta } from '../../domain/history/job-history.ts';
import type { Job } from '../../domain/job-records.ts';
import { columnArrays, unnest } from './column-arrays.ts';

/** The endpoint is called differently than in the sums of `job_counts`, which the same statement may write. */
const GIVEN_COLUMNS = ['recorded_endpoint', 'minute', 'name', 'count', 'total'] as const;

/**
 * Adds to the history of endpoints, from a query with the columns of the table. As with the counts, each
 * writer has rows of its own (`writer`).
 */
export const addHistorySql = (
  source: string,
): string => `insert into job_history (endpoint_id, minute, writer, name, count, total) ${source}
  on conflict (endpoint_id, minute, writer, name) do update
  set count = job_history.count + excluded.count, total = job_history.total + excluded.total`;

/** For sums that are made here. */
export const ADD_HISTORY = addHistorySql(
  `select given.recorded_endpoint, given.minute, :writer, given.name, given.count, given.total from ${unnest(GIVEN_COLUMNS)}`,
);

/**
 * Sums what the changes of a batch add. By endpoint, minute and name one after the other: to make one key of the
 * three took 4 % of a server's time while it drained a queue.
 */
export class HistorySums {
  readonly #sums = new Map<string, Map<number, Map<string, HistoryDelta>>>();

  get isEmpty(): boolean {
    return this.#sums.size === 0;
  }

  add(endpointId: string, before: Job | undefined, after: Job | undefined): void {
    for (const delta of historyDeltas(before, after)) {
      const names = entry(
        entry(this.#sums, endpointId, newMap<number, Map<string, HistoryDelta>>),
        delta.minute,
        newMap<string, HistoryDelta>,
      );
      const sum = names.get(delta.name);
      if (sum === undefined) names.set(delta.name, delta);
      else {
        sum.count += delta.count;
        sum.total += delta.total;
      }
    }
  }

  values(): Record<string, string> {
    const rows = [...this.#sums].flatMap(([recorded_endpoint, minutes]) =>
      [...minutes.values()].flatMap((names) =>
        [...names.values()].map((delta) => ({ recorded_endpoint, ...delta })),
      ),
    );
    // In one order, so that two statements do not wait for each other.
    return columnArrays(rows.sort(byKey), GIVEN_COLUMNS);
  }
}

type Recorded = HistoryDelta & { recorded_endpoint: string };

function byKey(one: Recorded, other: Recorded): number {
  if (one.recorded_endpoint !== other.recorded_endpoint)
    return one.recorded_endpoint < other.recorded_endpoint ? -1 : 1;
  if (one.minute !== other.minute) return one.minute - other.minute;
  return one.name < other.name ? -1 : 1;
}

function newMap<Key, Value>(): Map<Key, Value> {
  return new Map();
}

/** The value of a key, which is made where there is none. */
function entry<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}
