import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { numberedValues, numberParameters } from '../named-parameters.ts';
import type { NamedValues } from '../named-parameters.ts';
import type { Row, Value } from '../sql.ts';
import type { GroupCommit } from './group-commit.ts';

/** Statements that change what a job is, carries or streams. */
const JOB_TABLES = /^\s*(?:insert(?: or \w+)? into|update|delete from) (?:jobs|job_requests|job_chunks)\b/i;

/**
 * SQLite plans a statement with `limit ?` for the limit it is given, and so plans it anew in every run: 50 µs
 * on the table of jobs. It does not do so for an expression.
 */
const VARIABLE_LIMIT = /\b(limit|offset) (\?\d+)/g;

/** A statement that reads. */
export interface Query<R> {
  get(values?: NamedValues): R | undefined;
  all(values?: NamedValues): R[];
  iterate(values?: NamedValues): Iterable<R>;
}

/** A statement that writes; answers how many rows it changed. */
export type Write = (values?: NamedValues) => number;

/** The statements of the queue, each prepared once. Parameters are named: `:seq`. */
export class Statements {
  readonly #connection: DatabaseSync;
  readonly #group: GroupCommit;
  readonly #queries = new Map<string, Query<unknown>>();
  readonly #writes = new Map<string, Write>();

  constructor(connection: DatabaseSync, group: GroupCommit) {
    this.#connection = connection;
    this.#group = group;
  }

  /** One whose rows are objects. */
  rows<R = Row>(text: string): Query<R> {
    return this.#query(text, false) as Query<R>;
  }

  /** One whose rows are arrays. */
  arrays(text: string): Query<Value[]> {
    return this.#query(text, true) as Query<Value[]>;
  }

  /** One that writes. The first write of a group begins its transaction. */
  write(text: string): Write {
    const known = this.#writes.get(text);
    if (known !== undefined) return known;
    const { statement, values } = this.#prepare(text);
    const isOfJobs = JOB_TABLES.test(text);
    const write: Write = (given = {}) => {
      this.#group.begin();
      const changes = Number(statement.run(...values(given)).changes);
      if (isOfJobs && changes > 0)
        this.#group.recordWrite(typeof given['seq'] === 'number' ? given['seq'] : 'many');
      return changes;
    };
    this.#writes.set(text, write);
    return write;
  }

  /**
   * An insert whose values come in the order of its columns, for so many rows. Every job that is accepted
   * makes one: to look up its values by name would take 1 µs, of the 6 µs that the insert takes.
   */
  insert(text: string, columns: readonly string[], rows = 1): (values: readonly Value[]) => number {
    const row = `(${columns.map(() => '?').join(', ')})`;
    const statement = this.#connection.prepare(
      `${text} (${columns.join(', ')}) values ${Array.from({ length: rows }, () => row).join(', ')}`,
    );
    return (values) => {
      this.#group.begin();
      return Number(statement.run(...values).changes);
    };
  }

  #query(text: string, asArrays: boolean): Query<unknown> {
    const key = `${asArrays} ${text}`;
    const known = this.#queries.get(key);
    if (known !== undefined) return known;
    const { statement, values } = this.#prepare(text);
    statement.setReturnArrays(asArrays);
    const query: Query<unknown> = {
      get: (given = {}) => statement.get(...values(given)),
      all: (given = {}) => statement.all(...values(given)),
      iterate: (given = {}) => statement.iterate(...values(given)),
    };
    this.#queries.set(key, query);
    return query;
  }

  #prepare(text: string): { statement: StatementSync; values: (given: NamedValues) => Value[] } {
    const { text: numbered, names } = numberParameters(text, '?');
    return {
      statement: this.#connection.prepare(numbered.replace(VARIABLE_LIMIT, '$1 ($2 + 0)')),
      values: (given) => numberedValues(names, given),
    };
  }
}

/** `a = :a, b = :b` */
export function assignments(columns: readonly string[]): string {
  return columns.map((column) => `${column} = :${column}`).join(', ');
}

/** `(a, b) values (:a, :b)` */
export function columnsAndValues(columns: readonly string[]): string {
  return `(${columns.join(', ')}) values (${columns.map((column) => `:${column}`).join(', ')})`;
}
