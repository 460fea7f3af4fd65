import type { CountDeltas } from '../job-store.ts';
import type { Statements, Write } from './statements.ts';

/**
 * How many jobs of an endpoint are in which state (`job_counts`). Changes are summed up while a transaction runs
 * and written once at its end: to update the same row for each job would cost a sixth of a submission.
 */
export class JobCounters {
  readonly #add: Write;
  readonly #deltas = new Map<string, CountDeltas>();

  constructor(statements: Statements) {
    // On SQLite there is one server, and so one row for each endpoint. PostgreSQL has one for each writer (`lane`).
    this.#add = statements.write(
      `insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried)
        values (:endpoint_id, 'sqlite', :queued, :running, :completed, :failed, :retried)
        on conflict (endpoint_id, lane) do update set queued = queued + excluded.queued, running = running + excluded.running,
          completed = completed + excluded.completed, failed = failed + excluded.failed, retried = retried + excluded.retried`,
    );
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
  }

  /** After a rollback. */
  discard(): void {
    this.#deltas.clear();
  }

  deleteEndpoint(endpointId: string): void {
    this.#deltas.delete(endpointId);
  }
}
