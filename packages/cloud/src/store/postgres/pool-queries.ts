import type { Pool } from 'pg';
import type { Row, Value } from '../sql.ts';
import { translateErrors } from './transactions.ts';

/** Statements that stand alone, on any connection. */
export interface PoolQueries {
  rows(text: string, values: unknown[]): Promise<Row[]>;
  /** Rows as arrays. */
  arrays(text: string, values: unknown[]): Promise<Value[][]>;
}

export function poolQueries(pool: Pool): PoolQueries {
  return {
    rows: async (text, values) => (await translateErrors(pool.query<Row>(text, values))).rows,
    arrays: async (text, values) =>
      (await translateErrors(pool.query<Value[]>({ text, values, rowMode: 'array' }))).rows,
  };
}
