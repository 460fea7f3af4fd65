import type { Pool } from 'pg';
import { inTransaction } from './transactions.ts';

const COUNT_COLUMNS = ['queued', 'running', 'completed', 'failed', 'retried'];

/** Adds to the counts of endpoints, from a query with the columns of the table. Each server writes in lanes of its own, so that two never wait for the same row. */
export const addCountsSql = (
  source: string,
): string => `insert into job_counts (endpoint_id, lane, ${COUNT_COLUMNS.join(', ')}) ${source}
  on conflict (endpoint_id, lane) do update set ${COUNT_COLUMNS.map((column) => `${column} = job_counts.${column} + excluded.${column}`).join(', ')}`;

/** Every start of a server makes lanes of its own, so there would be more and more of them: they become one for each endpoint. Nobody writes meanwhile, and where somebody writes for long it is left for the next time. */
export function mergeCountRows(pool: Pool): Promise<void> {
  return inTransaction(pool, async (client) => {
    await client.query(`set local lock_timeout = '100ms'`);
    try {
      await client.query('lock table job_counts in share row exclusive mode');
    } catch {
      return;
    }
    const { rows } = await client.query<Record<string, string>>(
      `select endpoint_id, ${COUNT_COLUMNS.map((column) => `sum(${column})::text as ${column}`).join(', ')} from job_counts group by endpoint_id having count(*) > 1`,
    );
    await client.query('delete from job_counts where endpoint_id = any ($1)', [
      rows.map((row) => row['endpoint_id']),
    ]);
    for (const row of rows)
      await client.query(
        addCountsSql(
          `values ($1, 'all', ${COUNT_COLUMNS.map((_, index) => `$${index + 2}::bigint`).join(', ')})`,
        ),
        [row['endpoint_id'], ...COUNT_COLUMNS.map((column) => row[column])],
      );
  });
}
