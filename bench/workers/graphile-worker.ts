import pg from 'pg';
import { Logger, run } from 'graphile-worker';
import type { Runner } from 'graphile-worker';
import type { BenchWorker, WorkerOptions } from './worker-messages.ts';

const quiet = new Logger(() => () => undefined);

function ignore(): void {
  // A connection that breaks while it is idle is replaced; one that breaks in use fails its query.
}

/**
 * Graphile Worker with its batched settings: a local queue, and completions that go to the database together.
 */
export async function graphileWorker({ target, concurrency }: WorkerOptions): Promise<BenchWorker> {
  let done = 0;
  const pool = new pg.Pool({ connectionString: target, max: 6 });
  // Graphile Worker asks whoever brings a pool to listen for the errors of its idle connections.
  pool.on('error', ignore);
  pool.on('connect', (client) => client.on('error', ignore));
  await pool.query('select 1');
  let runner: Promise<Runner> | undefined;
  const start = (): Promise<Runner> =>
    run({
      pgPool: pool,
      preset: {
        worker: {
          concurrentJobs: concurrency,
          pollInterval: 1_000,
          localQueue: { size: 500 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          logger: quiet,
        },
      },
      noHandleSignals: true,
      taskList: {
        bench: () => {
          done += 1;
        },
      },
    });
  return {
    get done() {
      return done;
    },
    start: () => {
      runner = start();
    },
    stop: async () => {
      await (await runner)?.stop();
      await pool.end();
    },
  };
}
