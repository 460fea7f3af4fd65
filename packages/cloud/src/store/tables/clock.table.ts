import type { ClockStore, SharedTime } from '../clock-store.ts';
import type { Database } from '../database.ts';
import { execute, row, sql } from '../sql.ts';

/** The shared time is a row of `settings`. */
const SHARED = 'shared time';

export function clockTable(database: Database): ClockStore {
  return {
    databaseTime: async () => {
      if (database.dialect === 'sqlite') return undefined;
      const found = await database.read(() =>
        row<{ now: number; shared: string | null }>(
          sql`select (extract(epoch from clock_timestamp()) * 1000)::bigint as now,
            (select value from settings where name = ${SHARED}) as shared`,
        ),
      );
      return found && { now: found.now, shared: parseShared(found.shared) };
    },

    saveShared: ({ offset, writtenAt }) =>
      database.write(function* () {
        const value = JSON.stringify({ offset, writtenAt });
        yield* execute(
          sql`insert into settings (name, value) values (${SHARED}, ${value})
            on conflict (name) do update set value = excluded.value`,
        );
      }),

    moveDueTimes: (by, onMoved) =>
      database.write(function* () {
        const live = yield* row(
          sql`select 1 from jobs where status = 'IN_QUEUE'
            union all select 1 from jobs where status = 'IN_PROGRESS'
            union all select 1 from workers where ended_at is null
            union all select 1 from pods where active = 1 limit 1`,
        );
        if (live !== undefined) return false;
        yield* execute(sql`update jobs set due_at = due_at + ${by}, next_check_at = next_check_at + ${by}`);
        yield* execute(
          sql`update webhook_deliveries set next_at = next_at + ${by} where next_at is not null`,
        );
        onMoved();
        return true;
      }),

    moveJobsOf: ({ from, to }, by) =>
      database.write(function* () {
        yield* execute(
          sql`update jobs set created_at = created_at + ${by}, queued_at = queued_at + ${by}, ttl_at = ttl_at + ${by},
              taken_at = taken_at + ${by}, due_at = due_at + ${by}, next_check_at = next_check_at + ${by}
            where status in ('IN_QUEUE', 'IN_PROGRESS') and created_at between ${from} and ${to}`,
        );
      }),
  };
}

function parseShared(text: string | null): SharedTime | undefined {
  if (text === null) return undefined;
  try {
    const { offset, writtenAt } = JSON.parse(text) as SharedTime;
    return Number.isFinite(offset) && Number.isFinite(writtenAt) ? { offset, writtenAt } : undefined;
  } catch {
    return undefined;
  }
}
