import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { BerthError } from '../../support/errors.ts';
import { NO_OBSERVER } from '../store-observer.ts';
import type { StoreObserver } from '../store-observer.ts';
import type { DiskSync } from './wal-sync.ts';

/** A commit that nobody waits for is synced after at most twice this time. */
const LAZY_SYNC_MS = 5;
/** Beyond this many, those that are on the disk are forgotten. */
const MAX_TRACKED_JOBS = 10_000;

/** Takes part in every transaction. */
export interface CommitHooks {
  /** Writes what is still to be written. */
  beforeCommit(): void;
  afterRollback(): void;
}

/** Does a kind of work for several at once, and answers for each. */
export type BatchWork<Item, Result> = (items: readonly Item[]) => Result[];

/** What a read depends on: the jobs with these numbers, the resources, or anything. */
export type ReadScope = readonly number[] | 'resources' | 'anything';

export interface GroupCommitOptions {
  observer?: StoreObserver;
  /** Whether a failure was for want of space, and there is some now. */
  makeRoom?(error: unknown): boolean;
  /** Something was committed, here or beside the groups. */
  afterCommit?(): void;
}

interface WorkItem {
  work: BatchWork<unknown, unknown>;
  item: unknown;
  /** It is answered when the disk has it; else when it is committed. */
  synced: boolean;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/**
 * Pieces of work that arrive in one turn of the event loop share one transaction, and so one
 * sync of the disk: what costs a tenth of a millisecond alone costs next to nothing among a
 * hundred. An operation is acknowledged after its commit is on disk, never before.
 */
export class GroupCommit {
  readonly #connection: DatabaseSync;
  readonly #disk: DiskSync;
  readonly #translate: (error: unknown) => Error;
  readonly #options: GroupCommitOptions;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  #hasBegun = false;
  #first: WorkItem[] = [];
  #last: WorkItem[] = [];
  #scheduled = false;
  #closed = false;
  /** Something is committed and not on the disk, and nobody waits for it. */
  #isUnsynced = false;
  /**
   * The timer of that sync. It is seldom set where syncs follow each other: setting and clearing it each time
   * costs more than some of the writes.
   */
  #lazySync: NodeJS.Timeout | undefined;
  #syncs = 0;
  /** Counts the commits that wrote. */
  #generation = 0;
  /** All commits up to this one are on the disk. */
  #syncedGeneration = 0;
  /**
   * The last commit that wrote each job, several jobs at once, and resources, as far as it may not be on the
   * disk.
   */
  readonly #jobGenerations = new Map<number, number>();
  #manyJobsGeneration = 0;
  #resourcesGeneration = 0;
  /** Set while writes wait. */
  #pause: PromiseWithResolvers<void> | undefined;
  readonly #observer: StoreObserver;
  hooks: CommitHooks = { beforeCommit: () => undefined, afterRollback: () => undefined };

  constructor(
    connection: DatabaseSync,
    disk: DiskSync,
    translate: (error: unknown) => Error,
    options: GroupCommitOptions = {},
  ) {
    this.#options = options;
    this.#observer = options.observer ?? NO_OBSERVER;
    this.#connection = connection;
    this.#disk = disk;
    this.#translate = translate;
    this.#begin = connection.prepare('begin immediate');
    this.#end = connection.prepare('commit');
  }

  /** Called before each write: the first one begins the transaction. Work that writes nothing needs none. */
  begin(): void {
    if (this.#hasBegun) return;
    this.#begin.run();
    this.#hasBegun = true;
  }

  /**
   * Called with each write to a job, or to several at once. Whoever reads one of them waits for the disk to
   * have it.
   */
  recordWrite(seq: number | 'many'): void {
    const next = this.#generation + 1;
    if (seq === 'many') this.#manyJobsGeneration = next;
    else this.#jobGenerations.set(seq, next);
  }

  run<T>(work: () => T): Promise<T> {
    return this.#add(this.#first, () => [work()], undefined, true);
  }

  /** A transaction was committed on the connection beside the groups. Resolves when the disk has it. */
  async syncResources(): Promise<void> {
    this.#generation += 1;
    this.#resourcesGeneration = this.#generation;
    this.#options.afterCommit?.();
    await this.#syncBeside();
  }

  /**
   * For work that is not acknowledged to a client yet: resolves when it is committed. Whatever is acknowledged
   * later is so after a sync that includes this commit.
   */
  runUnsynced<T>(work: () => T): Promise<T> {
    return this.#add(this.#first, () => [work()], undefined, false);
  }

  /** The same, after everything else of the turn: a take sees the jobs that came in with it. */
  runLast<T>(work: () => T): Promise<T> {
    return this.#add(this.#last, () => [work()], undefined, false);
  }

  /** Items of the same work that follow each other are given to it together. */
  runInBatch<Item, T>(work: BatchWork<Item, T>, item: Item, synced: boolean): Promise<T> {
    return this.#add(this.#first, work as BatchWork<unknown, T>, item, synced);
  }

  /**
   * Resolves when what was read is on disk: nobody sees what a power cut could undo. Data that was not written
   * lately is returned at once, so a slow disk delays only readers of data that is still being synced. Reads
   * need no write, so they work on a full disk.
   */
  read<T>(work: () => T, scope: ReadScope = 'anything'): Promise<T> {
    try {
      const value = work();
      if (!this.#disk.hasFailed && this.#lastWrite(scope) <= this.#syncedGeneration)
        return Promise.resolve(value);
      const synced = this.#isBehind ? this.#syncBeside() : this.#disk.pending;
      if (synced === undefined) return Promise.resolve(value);
      return synced.then(
        () => value,
        (error: unknown) => Promise.reject(this.#translate(error)),
      );
    } catch (error) {
      return Promise.reject(this.#translate(error));
    }
  }

  /** For counts and lists of ids, which do not acknowledge the state of a job. */
  readUnsynced<T>(work: () => T): Promise<T> {
    try {
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(this.#translate(error));
    }
  }

  /** The last commit that may have changed what is read. */
  #lastWrite(scope: ReadScope): number {
    if (scope === 'resources') return this.#resourcesGeneration;
    if (scope === 'anything') return this.#generation;
    let last = this.#manyJobsGeneration;
    for (const seq of scope) last = Math.max(last, this.#jobGenerations.get(seq) ?? 0);
    return last;
  }

  #add<T>(group: WorkItem[], work: BatchWork<unknown, T>, item: unknown, synced: boolean): Promise<T> {
    if (this.#closed)
      return Promise.reject(new BerthError('unavailable', 'the server is stopping; try again'));
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.flush());
    }
    return new Promise<T>((resolve, reject) =>
      group.push({ work, item, synced, resolve: resolve as WorkItem['resolve'], reject }),
    );
  }

  /** Nothing is committed until `resume`. */
  pause(): void {
    this.#pause ??= Promise.withResolvers();
    // Most of the time nobody waits for it.
    this.#pause.promise.catch(() => undefined);
  }

  /** With an error, everything that waits is refused with it, and so is everything after it. */
  resume(error?: Error): void {
    if (error !== undefined) this.#pause?.reject(this.#translate(error));
    else {
      this.#pause?.resolve();
      this.#pause = undefined;
    }
    this.flush();
  }

  /** What a write outside of the batches has to wait for, if anything. */
  get writable(): Promise<void> | undefined {
    return this.#pause?.promise;
  }

  /** Commits what waits, and takes nothing more. */
  close(): void {
    this.flush();
    this.#closed = true;
    if (this.#isBehind) this.#sync();
    clearTimeout(this.#lazySync);
  }

  flush(): void {
    this.#scheduled = false;
    const group = this.#last.length === 0 ? this.#first : [...this.#first, ...this.#last];
    if (group.length === 0) return;
    this.#first = [];
    this.#last = [];
    const { writable } = this;
    if (writable === undefined) return this.#commit(group);
    void writable.then(
      () => this.#commit(group),
      (error: unknown) => {
        for (const { reject } of group) reject(error);
      },
    );
  }

  #commit(group: WorkItem[]): void {
    let results: unknown[];
    let hasWritten = false;
    const waits = group.some(({ synced }) => synced);
    const start = performance.now();
    try {
      results = doAll(group);
      this.hooks.beforeCommit();
      hasWritten = this.#hasBegun;
      if (hasWritten) {
        this.#end.run();
        this.#generation += 1;
        this.#observer.committed(group.length, performance.now() - start);
      }
      this.#hasBegun = false;
    } catch (error) {
      if (this.#connection.isTransaction) this.#connection.exec('rollback');
      this.#hasBegun = false;
      this.hooks.afterRollback();
      if (this.#options.makeRoom?.(error) === true) return this.#commit(group);
      const failure = this.#translate(error);
      const all = group.length === 1 || (failure instanceof BerthError && failure.code === 'unavailable');
      if (all) for (const { reject } of group) reject(failure);
      // One piece cannot be done. Each by itself: the others shall not suffer for it.
      else for (const piece of group) this.#commit([piece]);
      return;
    }
    const answer = (isSynced: boolean): void => {
      group.forEach(({ synced, resolve }, index) => {
        if (synced === isSynced) resolve(results[index]);
      });
    };
    /** It is committed all the same, so nothing of it is done again. */
    const refuse = (error: unknown): void => {
      const failure = this.#translate(error);
      for (const { synced, reject } of group) if (synced) reject(failure);
    };
    if (hasWritten) this.#options.afterCommit?.();
    answer(false);
    if (!waits) {
      if (hasWritten) this.#syncLater();
      return;
    }
    // What wrote nothing, and came after nothing that is not on the disk yet, has nothing to wait for.
    const synced = hasWritten || this.#isBehind ? this.#syncBeside() : this.#disk.pending;
    if (synced === undefined) answer(true);
    else synced.then(() => answer(true), refuse);
  }

  /**
   * Something that is committed may not be on the disk, and no sync is on its way that would bring it there.
   */
  get #isBehind(): boolean {
    return this.#isUnsynced || this.#disk.hasFailed;
  }

  #sync(): void {
    this.#syncs += 1;
    this.#disk.sync();
    this.#isUnsynced = false;
    this.#synced(this.#generation);
  }

  /** Never on this thread: a disk may take seconds, and nobody else shall wait for it. */
  #syncBeside(): Promise<void> {
    this.#isUnsynced = false;
    this.#syncs += 1;
    const generation = this.#generation;
    return this.#disk.syncInBackground().then(() => this.#synced(generation));
  }

  #synced(generation: number): void {
    this.#syncedGeneration = Math.max(this.#syncedGeneration, generation);
    if (this.#syncedGeneration === this.#generation) this.#jobGenerations.clear();
    else if (this.#jobGenerations.size > MAX_TRACKED_JOBS)
      for (const [seq, last] of this.#jobGenerations)
        if (last <= this.#syncedGeneration) this.#jobGenerations.delete(seq);
  }

  #syncLater(): void {
    this.#isUnsynced = true;
    if (this.#lazySync !== undefined) return;
    const syncs = this.#syncs;
    this.#lazySync = setTimeout(() => {
      this.#lazySync = undefined;
      if (!this.#isUnsynced) return;
      // Nobody waits for this sync, so its failure is not reported. DiskSync remembers it: the next read or
      // write tries again and gets the error.
      if (this.#syncs === syncs) this.#syncBeside().catch(() => undefined);
      else this.#syncLater();
    }, LAZY_SYNC_MS);
  }
}

function doAll(group: readonly WorkItem[]): unknown[] {
  const results: unknown[] = [];
  for (let from = 0; from < group.length; ) {
    const { work } = group[from] as WorkItem;
    const items: unknown[] = [];
    for (; group[from]?.work === work; from += 1) items.push(group[from]?.item);
    for (const result of work(items)) results.push(result);
  }
  return results;
}
