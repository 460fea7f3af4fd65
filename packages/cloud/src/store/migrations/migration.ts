import type { Dialect } from '../sql.ts';

/** One step of the schema. Steps are numbered from 1 without gaps and never change once released. */
export interface Migration {
  name: string;
  /** Statements that both databases understand, or where they differ one for each. */
  statements: (string | Record<Dialect, string>)[];
  /**
   * Servers that do not know this step may work on the changed schema: it adds tables, and columns that have
   * a default or may be null. Such a server stays ready, and can be started again.
   */
  expandsOnly?: true;
}
