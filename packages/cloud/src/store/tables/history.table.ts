import { HOUR_MS, addValue, mergeRollup } from '../../domain/history/rollup.ts';
import type { Rollup } from '../../domain/history/rollup.ts';
import type { Database } from '../database.ts';
import type { HistoryRow, HistoryStep, HistoryStore, QueueDepth, Sample } from '../history-store.ts';
import { execute, row, rows, sql } from '../sql.ts';
import type { Steps } from '../sql.ts';
import { forUpdate } from './owned-table.ts';

/** Endpoints and minutes that one transaction folds: on SQLite nothing else runs meanwhile. */
const FOLD_BATCH = 50;
const TRIM_BATCH = 5_000;

interface JobHistoryRow {
  minute: number;
  name: string;
  count: number;
  total: number;
}

export function historyTable(database: Database): HistoryStore {
  return {
    foldJobs: (before) =>
      database.write(function* () {
        const found = yield* rows<{ endpoint_id: string; minute: number }>(
          sql`select distinct endpoint_id, minute from job_history where minute < ${before}
            order by minute, endpoint_id limit ${FOLD_BATCH}`,
        );
        for (const { endpoint_id, minute } of found) {
          // What a server adds meanwhile is not deleted, and is folded the next time.
          const moved = yield* rows<JobHistoryRow>(
            sql`delete from job_history where endpoint_id = ${endpoint_id} and minute = ${minute}
              returning minute, name, count, total`,
          );
          yield* add({ resourceId: endpoint_id, minute: Number(minute), data: rollupOf(moved) });
        }
        return found.length === FOLD_BATCH;
      }),
    addSamples: (samples) =>
      database.write(function* () {
        for (const sample of samples) yield* add(sample);
      }),
    read: (resourceId, step, from, to) =>
      database.read(function* () {
        const stored = yield* rows<{ start: number; data: string }>(
          sql`select start, data from history where resource_id = ${resourceId} and step = ${step}
            and start >= ${from} and start < ${to} order by start`,
        );
        const open = yield* rows<JobHistoryRow>(
          sql`select minute, name, count, total from job_history where endpoint_id = ${resourceId}
            and minute >= ${from} and minute < ${to} order by minute`,
        );
        return merged(stored, open, step);
      }),
    trim: ({ minutesFrom, hoursFrom, maxMinutes }) =>
      database.write(function* () {
        yield* deleteBefore('minute', minutesFrom);
        yield* deleteBefore('hour', hoursFrom);
        const count = yield* row<{ count: number }>(
          sql`select count(*) as count from history where step = 'minute'`,
        );
        const over = Number(count?.count ?? 0) - maxMinutes;
        if (over <= 0) return;
        const limit = Math.min(over, TRIM_BATCH);
        const last = yield* row<{ start: number }>(
          sql`select start from history where step = 'minute' order by start limit 1 offset ${limit - 1}`,
        );
        if (last !== undefined) yield* deleteBefore('minute', Number(last.start) + 1);
      }),
    remove: (resourceId) =>
      database.write(function* () {
        yield* execute(sql`delete from history where resource_id = ${resourceId}`);
        yield* execute(sql`delete from job_history where endpoint_id = ${resourceId}`);
      }),
    queueDepths: () =>
      database.read(function* () {
        const found = yield* rows<{ endpoint_id: string; queued: number; running: number }>(
          sql`select endpoint_id, sum(queued) as queued, sum(running) as running from job_counts
            group by endpoint_id having sum(queued) > 0 or sum(running) > 0`,
        );
        return found.map(
          ({ endpoint_id, queued, running }): QueueDepth => ({
            endpointId: endpoint_id,
            queued: Number(queued),
            running: Number(running),
          }),
        );
      }),
  };
}

/** Adds to the rows of the minute and of its hour. */
function* add({ resourceId, minute, data, minuteOnly }: Sample): Steps<void> {
  yield* addTo(resourceId, 'minute', minute, data);
  if (minuteOnly === true) return;
  yield* addTo(resourceId, 'hour', Math.floor(minute / HOUR_MS) * HOUR_MS, data);
}

function* addTo(resourceId: string, step: HistoryStep, start: number, data: Rollup): Steps<void> {
  const found = yield* row<{ data: string }>(
    sql`select data from history where resource_id = ${resourceId} and step = ${step} and start = ${start}${forUpdate}`,
  );
  const text = JSON.stringify(
    mergeRollup(found === undefined ? {} : (JSON.parse(found.data) as Rollup), data),
  );
  yield* execute(sql`insert into history (resource_id, step, start, data)
    values (${resourceId}, ${step}, ${start}, ${text})
    on conflict (resource_id, step, start) do update set data = excluded.data`);
}

function* deleteBefore(step: HistoryStep, start: number): Steps<void> {
  yield* execute(sql`delete from history where step = ${step} and start < ${start}`);
}

function rollupOf(found: readonly JobHistoryRow[]): Rollup {
  const data: Rollup = {};
  for (const { name, count, total } of found) addValue(data, name, Number(count), Number(total));
  return data;
}

function merged(
  stored: readonly { start: number; data: string }[],
  open: readonly JobHistoryRow[],
  step: HistoryStep,
): HistoryRow[] {
  const byStart = new Map(
    stored.map(({ start, data }) => [Number(start), JSON.parse(data) as Rollup] as const),
  );
  for (const one of open) {
    const minute = Number(one.minute);
    const start = step === 'minute' ? minute : Math.floor(minute / HOUR_MS) * HOUR_MS;
    byStart.set(start, mergeRollup(byStart.get(start) ?? {}, rollupOf([one])));
  }
  return [...byStart].sort(([one], [other]) => one - other).map(([start, data]) => ({ start, data }));
}
