import { SteadyMap } from '../../support/steady-map.ts';
import type { CountMoves } from '../jobs.ts';
import type { Statements } from './statements.ts';

/** There is one server on a SQLite file, and it does one thing at a time. */
const LANE = 'sqlite';

/** How many jobs of an endpoint are in which state. Counts move once for each group of changes, not for each job. */
export class Counts {
  readonly #add: ReturnType<Statements['writing']>;
  readonly #moves = new SteadyMap<string, CountMoves>();

  constructor(statements: Statements) {
    this.#add =
      statements.writing(`insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried) values (?, '${LANE}', ?, ?, ?, ?, ?)
      on conflict (endpoint_id, lane) do update set queued = queued + excluded.queued, running = running + excluded.running, completed = completed + excluded.completed, failed = failed + excluded.failed, retried = retried + excluded.retried`);
  }

  move(endpointId: string, move: CountMoves): void {
    const sum = this.#moves.get(endpointId);
    if (sum === undefined) this.#moves.set(endpointId, { ...move });
    else for (const name of Object.keys(move) as (keyof CountMoves)[]) sum[name] += move[name];
  }

  write(): void {
    for (const [endpointId, sum] of this.#moves)
      this.#add().run(endpointId, sum.queued, sum.running, sum.completed, sum.failed, sum.retried);
    this.#moves.clear();
  }

  /** What was written is undone, and so is what was to be. */
  undo(): void {
    this.#moves.clear();
  }

  forgetEndpoint(endpointId: string): void {
    this.#moves.delete(endpointId);
  }
}
