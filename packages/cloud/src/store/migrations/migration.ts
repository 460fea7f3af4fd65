import type { Dialect } from '../sql.ts';

/** One step of the schema. Steps are numbered from 1 without gaps and never change once released. */
export interface Migration {
  name: string;
  /** Statements that both databases understand, or where they differ one for each. */
  statements: (string | Record<Dialect, string>)[];
}
