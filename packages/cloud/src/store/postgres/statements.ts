import type { Pool, PoolClient } from 'pg';
import { numberedValues, numberParameters } from '../named-parameters.ts';
import type { NamedValues } from '../named-parameters.ts';
import type { Row, Value } from '../sql.ts';
import { translateErrors } from './transactions.ts';

/** Runs a statement, on any connection of its pool or on that of a transaction; answers its rows. */
export type Query<R> = (values?: NamedValues, client?: PoolClient) => Promise<R[]>;

/**
 * The statements of the queue. Parameters are named: `:seq`. One with a name is prepared once on each
 * connection.
 */
export class Statements {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** One whose rows are objects. */
  rows<R = Row>(text: string, name?: string): Query<R> {
    const { text: numbered, names } = numberParameters(text, '$');
    return async (values = {}, client) => {
      const query = { ...(name && { name }), text: numbered, values: numberedValues<unknown>(names, values) };
      const { rows } = await translateErrors((client ?? this.#pool).query(query));
      return rows as R[];
    };
  }

  /** One whose rows are arrays. */
  arrays(text: string, name?: string): Query<Value[]> {
    const { text: numbered, names } = numberParameters(text, '$');
    return async (values = {}, client) => {
      const query = { ...(name && { name }), text: numbered, values: numberedValues<unknown>(names, values) };
      const { rows } = await translateErrors(
        (client ?? this.#pool).query<Value[]>({ ...query, rowMode: 'array' }),
      );
      return rows;
    };
  }
}
