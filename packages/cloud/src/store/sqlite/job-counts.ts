import { historyDeltas } from '../../domain/history/job-history.ts';
import type { HistoryDelta } from '../../domain/history/job-history.ts';
import type { Job } from '../../domain/job-records.ts';
import { countDeltas } from '../job-store.ts';
import type { CountDeltas } from '../job-store.ts';
import type { Statements, Write } from './statements.ts';

/**
 * How many jobs of an endpoint are in which state (`job_counts`). Changes are summed up while a transaction
 * runs and written once at its end: to update the same row for each job would cost a sixth of a submission.
 */
export class JobCounters {
  readonly #add: Write;
  readonly #addHistory: Write;
  readonly #deltas = new Map<string, CountDeltas>();
  /** What jobs add to the history of their endpoints (`job_history`), by endpoint, minute and name. */
  readonly #history = new Map<string, HistoryDelta & { endpointId: string }>();

  constructor(statements: Statements) {
    // On SQLite there is one server, and so one row for each endpoint. PostgreSQL has one for each writer
    // (`writer`).
    this.#add = statements.write(
      `insert into job_counts (endpoint_id, writer, queued, running, completed, failed, retried)
        values (:endpoint_id, 'sqlite', :queued, :running, :completed, :failed, :retried)
        on conflict (endpoint_id, writer) do update
        set queued = queued + excluded.queued, running = running + excluded.running,
          completed = completed + excluded.completed, failed = failed + excluded.failed,
          retried = retried + excluded.retried`,
    );
    this.#addHistory = statements.write(
      `insert into job_history (endpoint_id, minute, writer, name, count, total)
        values (:endpoint_id, :minute, 'sqlite', :name, :count, :total)
        on conflict (endpoint_id, minute, writer, name) do update
        set count = count + excluded.count, total = total + excluded.total`,
    );
  }

  /** A job changed: counts it, and adds to the history of its endpoint. */
  addChange(endpointId: string, before: Job | undefined, after: Job | undefined): void {
    this.add(endpointId, countDeltas(before, after));
    for (const delta of historyDeltas(before, after)) {
      const key = `${endpointId} ${delta.minute} ${delta.name}`;
      const sum = this.#history.get(key);
      if (sum === undefined) this.#history.set(key, { endpointId, ...delta });
      else {
        sum.count += delta.count;
        sum.total += delta.total;
      }
    }
  }

  add(endpointId: string, delta: CountDeltas): void {
    const sum = this.#deltas.get(endpointId);
    if (sum === undefined) {
      this.#deltas.set(endpointId, { ...delta });
      return;
    }
    sum.queued += delta.queued;
    sum.running += delta.running;
    sum.completed += delta.completed;
    sum.failed += delta.failed;
    sum.retried += delta.retried;
  }

  /** Before the commit. */
  flush(): void {
    for (const [endpoint_id, sum] of this.#deltas) this.#add({ endpoint_id, ...sum });
    this.#deltas.clear();
    for (const { endpointId, minute, name, count, total } of this.#history.values())
      this.#addHistory({ endpoint_id: endpointId, minute, name, count, total });
    this.#history.clear();
  }

  /** After a rollback. */
  discard(): void {
    this.#history.clear();
    this.#deltas.clear();
  }

  deleteEndpoint(endpointId: string): void {
    this.#deltas.delete(endpointId);
    for (const [key, delta] of this.#history) if (delta.endpointId === endpointId) this.#history.delete(key);
  }
}
