import PgBoss from 'pg-boss';
import type { BenchContext } from '../support/bench-context.ts';
import type { CleanupScope } from '../support/cleanup-scope.ts';
import { vacuum } from '../support/vacuum.ts';
import { CONCURRENCY } from './filled-queue.ts';
import type { FilledQueue } from './filled-queue.ts';

const BATCH_SIZE = 1_000;
const NAME = 'bench';

export async function filledPgBoss(
  bench: BenchContext,
  scope: CleanupScope,
  jobs: number,
): Promise<FilledQueue> {
  const { name, url } = await bench.database(scope);
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  await boss.createQueue(NAME);
  for (let queued = 0; queued < jobs; queued += BATCH_SIZE) {
    await boss.insert(
      NAME,
      Array.from({ length: Math.min(BATCH_SIZE, jobs - queued) }, () => ({
        name: NAME,
        data: { input: { prompt: 'hello' } },
      })),
    );
  }
  await boss.stop({ graceful: false, wait: true });
  await vacuum(url);
  return {
    name: 'pg-boss, PostgreSQL',
    open: async (run) => ({
      role: 'pgboss',
      target: (await bench.database(run, name)).url,
      queue: NAME,
      concurrency: CONCURRENCY,
    }),
  };
}
