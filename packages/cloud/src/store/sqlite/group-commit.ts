import type { DatabaseSync } from 'node:sqlite';
import { BerthError } from '../../support/errors.ts';

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
  #closed = false;
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
    if (this.#closed) return Promise.reject(new BerthError('unavailable', 'the server stops; try again'));
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.flush());
    }
    return new Promise<T>((resolve, reject) => group.push({ work, resolve: resolve as Waiting['resolve'], reject }));
  }

  /** Commits what waits, and takes nothing more. */
  close(): void {
    this.flush();
    this.#closed = true;
  }

  flush(): void {
    this.#scheduled = false;
    const group = this.#last.length === 0 ? this.#first : [...this.#first, ...this.#last];
    if (group.length === 0) return;
    this.#first = [];
    this.#last = [];
    this.#commit(group);
  }

  #commit(group: Waiting[]): void {
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
      const alone = group.length === 1 || (told instanceof BerthError && told.code === 'unavailable');
      if (alone) for (const { reject } of group) reject(told);
      // One piece cannot be done. Each by itself: the others shall not suffer for it.
      else for (const piece of group) this.#commit([piece]);
      return;
    }
    for (let index = 0; index < group.length; index += 1) group[index]?.resolve(results[index]);
  }
}
