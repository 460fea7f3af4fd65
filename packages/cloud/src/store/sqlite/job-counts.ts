import { ChurnMap } from '../../support/churn-map.ts';
import type { CountDeltas } from '../job-store.ts';
import type { Statements } from './statements.ts';

/** There is one server on a SQLite file, and it does one thing at a time. */
const COUNT_PARTITION = 'sqlite';

/** How many jobs of an endpoint are in which state. Counts move once for each group of changes, not for each job. */
export class JobCounters {
  readonly #add: ReturnType<Statements['write']>;
  readonly #moves = new ChurnMap<string, CountDeltas>();

  constructor(statements: Statements) {
    this.#add =
      statements.write(`insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried) values (?, '${COUNT_PARTITION}', ?, ?, ?, ?, ?)
      on conflict (endpoint_id, lane) do update set queued = queued + excluded.queued, running = running + excluded.running, completed = completed + excluded.completed, failed = failed + excluded.failed, retried = retried + excluded.retried`);
  }

  add(endpointId: string, move: CountDeltas): void {
    const sum = this.#moves.get(endpointId);
    if (sum === undefined) this.#moves.set(endpointId, { ...move });
    else for (const name of Object.keys(move) as (keyof CountDeltas)[]) sum[name] += move[name];
  }

  flush(): void {
    for (const [endpointId, sum] of this.#moves)
      this.#add().run(endpointId, sum.queued, sum.running, sum.completed, sum.failed, sum.retried);
    this.#moves.clear();
  }

  /** What was written is undone, and so is what was to be. */
  discard(): void {
    this.#moves.clear();
  }

  deleteEndpoint(endpointId: string): void {
    this.#moves.delete(endpointId);
  }
}
