import PgBoss from 'pg-boss';
import type { BenchWorker, WorkerOptions } from './worker-messages.ts';

const BATCH = 1_000;
const LOOPS = 2;

/**
 * pg-boss as fast as its interface allows: batches fetched and completed in a loop. Its own
 * `work()` waits half a second between two batches and would be an order of magnitude slower.
 */
export async function pgBossWorker({ target, queue }: WorkerOptions): Promise<BenchWorker> {
  const boss = new PgBoss({
    connectionString: target,
    max: LOOPS,
    supervise: false,
    schedule: false,
    migrate: false,
  });
  let done = 0;
  let stopping = false;
  boss.on('error', (error) => {
    // Its connections are still open for a moment after it has stopped, and are cut when the database goes.
    if (!stopping) throw error;
  });
  await boss.start();
  let loops: Promise<unknown> = Promise.resolve();

  async function loop(): Promise<void> {
    while (!stopping) {
      const jobs = await boss.fetch(queue, { batchSize: BATCH });
      if (jobs.length === 0) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        continue;
      }
      await boss.complete(
        queue,
        jobs.map(({ id }) => id),
      );
      done += jobs.length;
    }
  }

  return {
    get done() {
      return done;
    },
    start: () => {
      loops = Promise.all(Array.from({ length: LOOPS }, loop));
    },
    stop: async () => {
      stopping = true;
      await loops;
      await boss.stop({ graceful: false, wait: true });
    },
  };
}
