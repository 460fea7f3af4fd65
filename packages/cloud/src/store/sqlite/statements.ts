import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Value } from '../sql.ts';
import type { GroupCommit } from './group-commit.ts';

/** The statements of the queue, each prepared once. */
export class Statements {
  readonly #connection: DatabaseSync;
  readonly #group: GroupCommit;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(connection: DatabaseSync, group: GroupCommit) {
    this.#connection = connection;
    this.#group = group;
  }

  select(text: string): Pick<StatementSync, 'get' | 'all' | 'iterate'> {
    return this.#prepare(text);
  }

  /** One whose rows are arrays. */
  selectArrays(text: string): {
    get(...values: Value[]): Value[] | undefined;
    all(...values: Value[]): Value[][];
    iterate(...values: Value[]): Iterable<Value[]>;
  } {
    const known = this.#prepare(text);
    known.setReturnArrays(true);
    // The types know rows as objects alone.
    return known as unknown as ReturnType<Statements['selectArrays']>;
  }

  /** One that writes: asked for when it is to run, which begins the transaction, unless it is all (`isAll`) that is written. */
  write(text: string): (isAll?: boolean) => StatementSync {
    const known = this.#prepare(text);
    return (isAll) => {
      this.#group.begin(isAll);
      return known;
    };
  }

  #prepare(text: string): StatementSync {
    const known = this.#prepared.get(text) ?? this.#connection.prepare(text);
    this.#prepared.set(text, known);
    return known;
  }
}

export function placeholders(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ');
}

export function assignPlaceholders(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ?`).join(', ');
}
