import type { Pool } from 'pg';
import type { Row, Value } from '../sql.ts';
import { translated } from './database.ts';

/** Statements that stand alone, on any connection. */
export interface Queries {
  rows(text: string, values: unknown[]): Promise<Row[]>;
  /** Rows as arrays. */
  arrays(text: string, values: unknown[]): Promise<Value[][]>;
}

export function queriesOn(pool: Pool): Queries {
  return {
    rows: async (text, values) => (await translated(pool.query<Row>(text, values))).rows,
    arrays: async (text, values) =>
      (await translated(pool.query<Value[]>({ text, values, rowMode: 'array' }))).rows,
  };
}
