import type { Pool } from 'pg';
import type { CountDeltas } from '../job-store.ts';
import { columnArrays, unnest } from './column-arrays.ts';
import type { Statements } from './statements.ts';
import { inTransaction } from './transactions.ts';

const COUNT_COLUMNS = ['queued', 'running', 'completed', 'failed', 'retried'] as const;
const GIVEN_COLUMNS = ['endpoint_id', ...COUNT_COLUMNS] as const;

/**
 * Adds to the counts of endpoints, from a query with the columns of the table. Each server writes rows of its
 * own (`writer`), one for each kind of statement, so that two never wait for the same row; the sum is what
 * counts.
 */
export const addCountsSql = (
  source: string,
): string => `insert into job_counts (endpoint_id, writer, ${COUNT_COLUMNS.join(', ')}) ${source}
  on conflict (endpoint_id, writer) do update
  set ${COUNT_COLUMNS.map((column) => `${column} = job_counts.${column} + excluded.${column}`).join(', ')}`;

/** For sums that are made here. */
export const ADD_COUNTS = addCountsSql(
  `select given.endpoint_id, :writer, ${COUNT_COLUMNS.map((column) => `given.${column}`).join(', ')} ` +
    `from ${unnest(GIVEN_COLUMNS)}`,
);

/** Adds what a change does to the counts of an endpoint. */
export function addCountDeltas(sums: Map<string, CountDeltas>, endpointId: string, delta: CountDeltas): void {
  const sum = sums.get(endpointId);
  if (sum === undefined) sums.set(endpointId, { ...delta });
  else for (const column of COUNT_COLUMNS) sum[column] += delta[column];
}

export function countValues(sums: ReadonlyMap<string, CountDeltas>): Record<string, string> {
  return columnArrays(
    // In one order, so that two statements of this server do not wait for each other.
    [...sums]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([endpoint_id, sum]) => ({ endpoint_id, ...sum })),
    GIVEN_COLUMNS,
  );
}

/**
 * Every start of a server adds rows of its own; now and then they are merged into one for each endpoint.
 * Others must not write meanwhile; where they write for long it is left for the next time.
 */
export function mergeCountRows(pool: Pool, statements: Statements): Promise<void> {
  const selectSums = statements.rows<CountDeltas & { endpoint_id: string }>(
    `select endpoint_id, ${COUNT_COLUMNS.map((column) => `sum(${column})::bigint as ${column}`).join(', ')}
      from job_counts group by endpoint_id having count(*) > 1`,
  );
  const deleteRows = statements.rows('delete from job_counts where endpoint_id = any (:endpoint_ids)');
  const addCounts = statements.rows(ADD_COUNTS);
  return inTransaction(pool, async (client) => {
    await client.query(`set local lock_timeout = '100ms'`);
    try {
      await client.query('lock table job_counts in share row exclusive mode');
    } catch {
      return;
    }
    const sums = new Map(
      (await selectSums({}, client)).map(({ endpoint_id, ...sum }) => [endpoint_id, sum] as const),
    );
    await deleteRows({ endpoint_ids: [...sums.keys()] }, client);
    await addCounts({ ...countValues(sums), writer: 'all' }, client);
  });
}
