import type { Pool, QueryArrayConfig } from 'pg';
import { isDivisionByZero } from './transactions.ts';

/**
 * Runs a statement that is its own transaction, and answers its rows. One that divided by zero, so that
 * nothing of it is kept, leaves its connection as good as it was; `pool.query` would close it, as after any error.
 */
export function queryQueuePool<R extends unknown[]>(
  lanes: Pool,
  statement: Omit<QueryArrayConfig<unknown[]>, 'rowMode'>,
): Promise<R[]> {
  return new Promise((resolve, reject) => {
    lanes.connect((refusal, client, release) => {
      if (client === undefined) return reject(refusal ?? new Error('the pool has no connection'));
      client.query<R, unknown[]>({ ...statement, rowMode: 'array' }, (error: Error | null, result) => {
        release(error !== null && !isDivisionByZero(error));
        if (error !== null) reject(error);
        else resolve(result.rows);
      });
    });
  });
}
