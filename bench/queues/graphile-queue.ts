import pg from 'pg';
import { Logger, makeWorkerUtils } from 'graphile-worker';
import type { BenchContext } from '../support/bench-context.ts';
import type { CleanupScope } from '../support/cleanup-scope.ts';
import { vacuum } from '../support/vacuum.ts';
import { CONCURRENCY } from './filled-queue.ts';
import type { FilledQueue } from './filled-queue.ts';

const BATCH_SIZE = 1_000;

export async function filledGraphile(
  bench: BenchContext,
  scope: CleanupScope,
  jobs: number,
): Promise<FilledQueue> {
  const { name, url } = await bench.database(scope);
  const utils = await makeWorkerUtils({ connectionString: url, logger: new Logger(() => () => undefined) });
  await utils.migrate();
  for (let queued = 0; queued < jobs; queued += BATCH_SIZE) {
    await utils.addJobs(
      Array.from({ length: Math.min(BATCH_SIZE, jobs - queued) }, () => ({
        identifier: 'bench',
        payload: { input: { prompt: 'hello' } },
      })),
    );
  }
  await utils.release();
  await vacuum(url);
  return {
    name: 'Graphile Worker, PostgreSQL',
    open: async (run) => {
      const copy = await bench.database(run, name);
      const client = new pg.Client({ connectionString: copy.url });
      await client.connect();
      run.defer(() => client.end());
      // A job that has ended is deleted.
      const ended = async (): Promise<number> =>
        jobs -
        Number(
          (
            (await client.query('select count(*) as left from graphile_worker._private_jobs')).rows[0] as {
              left: string;
            }
          ).left,
        );
      return { role: 'graphile', target: copy.url, queue: 'bench', concurrency: CONCURRENCY, ended };
    },
  };
}
