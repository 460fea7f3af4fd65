import { historyDeltas } from '../../domain/history/job-history.ts';
import type { HistoryDelta } from '../../domain/history/job-history.ts';
import type { Job } from '../../domain/job-records.ts';
import { columnArrays, unnest } from './column-arrays.ts';

/** The endpoint is called differently than in the sums of `job_counts`, which the same statement may write. */
const GIVEN_COLUMNS = ['recorded_endpoint', 'minute', 'name', 'count', 'total'] as const;

/**
 * Adds to the history of endpoints, from a query with the columns of the table. As with the counts, each
 * writer has rows of its own (`lane`).
 */
export const addHistorySql = (
  source: string,
): string => `insert into job_history (endpoint_id, minute, lane, name, count, total) ${source}
  on conflict (endpoint_id, minute, lane, name) do update
  set count = job_history.count + excluded.count, total = job_history.total + excluded.total`;

/** For sums that are made here. */
export const ADD_HISTORY = addHistorySql(
  `select given.recorded_endpoint, given.minute, :lane, given.name, given.count, given.total from ${unnest(GIVEN_COLUMNS)}`,
);

/** Sums what the changes of a batch add. */
export class HistorySums {
  readonly #sums = new Map<string, HistoryDelta & { recorded_endpoint: string }>();

  get isEmpty(): boolean {
    return this.#sums.size === 0;
  }

  add(endpointId: string, before: Job | undefined, after: Job | undefined): void {
    for (const delta of historyDeltas(before, after)) {
      const key = `${endpointId} ${delta.minute} ${delta.name}`;
      const sum = this.#sums.get(key);
      if (sum === undefined) this.#sums.set(key, { recorded_endpoint: endpointId, ...delta });
      else {
        sum.count += delta.count;
        sum.total += delta.total;
      }
    }
  }

  values(): Record<string, string> {
    // In one order, so that two statements do not wait for each other.
    const sorted = [...this.#sums].sort(([one], [other]) => (one < other ? -1 : 1));
    return columnArrays(
      sorted.map(([, sum]) => sum),
      GIVEN_COLUMNS,
    );
  }
}
