import pg from 'pg';
import { Logger, makeWorkerUtils } from 'graphile-worker';
import type { Bench } from '../support/bench.ts';
import type { Stage } from '../support/stage.ts';
import { vacuum } from '../support/vacuum.ts';
import { CONCURRENCY } from './queue.ts';
import type { FilledQueue } from './queue.ts';

const TOGETHER = 1_000;

export async function filledGraphile(bench: Bench, stage: Stage, jobs: number): Promise<FilledQueue> {
  const { name, url } = await bench.database(stage);
  const utils = await makeWorkerUtils({ connectionString: url, logger: new Logger(() => () => undefined) });
  await utils.migrate();
  for (let queued = 0; queued < jobs; queued += TOGETHER) {
    await utils.addJobs(
      Array.from({ length: Math.min(TOGETHER, jobs - queued) }, () => ({
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
      run.onEnd(() => client.end());
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
      return { role: 'graphile', at: copy.url, queue: 'bench', concurrency: CONCURRENCY, ended };
    },
  };
}
