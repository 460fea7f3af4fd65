import PgBoss from 'pg-boss';
import type { Bench } from '../support/bench.ts';
import type { Stage } from '../support/stage.ts';
import { vacuum } from '../support/vacuum.ts';
import { CONCURRENCY } from './queue.ts';
import type { FilledQueue } from './queue.ts';

const TOGETHER = 1_000;
const NAME = 'bench';

export async function filledPgBoss(bench: Bench, stage: Stage, jobs: number): Promise<FilledQueue> {
  const { name, url } = await bench.database(stage);
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  await boss.createQueue(NAME);
  for (let queued = 0; queued < jobs; queued += TOGETHER) {
    await boss.insert(
      NAME,
      Array.from({ length: Math.min(TOGETHER, jobs - queued) }, () => ({
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
      at: (await bench.database(run, name)).url,
      queue: NAME,
      concurrency: CONCURRENCY,
    }),
  };
}
