import type { DatabaseSync } from 'node:sqlite';

interface Waiting {
  work: () => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/**
 * Pieces of work that arrive in one turn of the event loop share one transaction, and so one
 * sync of the disk: what costs a tenth of a millisecond alone costs next to nothing among a
 * hundred. Each is answered after the commit, never before.
 */
export class GroupCommit {
  readonly #connection: DatabaseSync;
  readonly #translate: (error: unknown) => Error;
  #first: Waiting[] = [];
  #last: Waiting[] = [];
  #scheduled = false;
  /** Runs at the end of every transaction, before it is committed. */
  beforeCommit: () => void = () => undefined;
  afterRollback: () => void = () => undefined;

  constructor(connection: DatabaseSync, translate: (error: unknown) => Error) {
    this.#connection = connection;
    this.#translate = translate;
  }

  run<T>(work: () => T): Promise<T> {
    return this.#add(this.#first, work);
  }

  /** After everything else of the same turn: a take sees the jobs that came in with it. */
  runLast<T>(work: () => T): Promise<T> {
    return this.#add(this.#last, work);
  }

  #add<T>(group: Waiting[], work: () => T): Promise<T> {
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.flush());
    }
    return new Promise<T>((resolve, reject) => group.push({ work, resolve: resolve as Waiting['resolve'], reject }));
  }

  /** Commits what waits. Work that throws takes the whole group with it: nothing of it is kept, everyone is told. */
  flush(): void {
    this.#scheduled = false;
    const group = [...this.#first, ...this.#last];
    if (group.length === 0) return;
    this.#first = [];
    this.#last = [];
    let results: unknown[];
    try {
      this.#connection.exec('begin immediate');
      results = group.map(({ work }) => work());
      this.beforeCommit();
      this.#connection.exec('commit');
    } catch (error) {
      if (this.#connection.isTransaction) this.#connection.exec('rollback');
      this.afterRollback();
      const told = this.#translate(error);
      for (const { reject } of group) reject(told);
      return;
    }
    group.forEach(({ resolve }, index) => resolve(results[index]));
  }
}
