import type { BenchContext } from './support/bench-context.ts';
import { PER_SECOND, ratio } from './support/bench-report.ts';
import type { Figures } from './support/bench-report.ts';
import { measureInterleaved, valuesOf } from './support/interleaved-rounds.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { median } from './support/statistics.ts';
import { WorkerPool } from './support/worker-pool.ts';
import { filledBerth } from './queues/berth-queue.ts';
import { filledBullmq } from './queues/bullmq-queue.ts';
import { filledGraphile } from './queues/graphile-queue.ts';
import { filledPgBoss } from './queues/pg-boss-queue.ts';
import type { FilledQueue } from './queues/filled-queue.ts';

const JOBS = 50_000;
const WORKERS = [1, 4, 16];
/** The longest that one run lasts; there are many of them. */
const SECONDS = 4;
const BARS = { public: 0.7, channel: 2, postgres: 1 };

export async function drain(bench: BenchContext): Promise<void> {
  const { report, tools, rounds } = bench;
  report.part(
    'drain',
    `${JOBS.toLocaleString('en-US')} queued no-op jobs through worker processes of concurrency 100; a ` +
      `run ends with the last job or after ${SECONDS} s`,
  );
  await withCleanup(async (scope) => {
    const sqlite = await filledBerth(bench, scope, 'SQLite', JOBS);
    const postgres = await filledBerth(bench, scope, 'PostgreSQL', JOBS);
    const graphile = await filledGraphile(bench, scope, JOBS);
    const pgBoss = await filledPgBoss(bench, scope, JOBS);
    const bullmq = tools.redis ? await filledBullmq(scope, JOBS) : undefined;
    if (bullmq === undefined)
      report.missingTool('redis-server', 'apt install redis-server', 'drain beside BullMQ');
    const [open, fast, fastOnPostgres] = [sqlite('public'), sqlite('channel'), postgres('channel')];
    const queues: FilledQueue[] = [
      ...(bullmq === undefined ? [] : [bullmq]),
      open,
      fast,
      graphile,
      pgBoss,
      fastOnPostgres,
    ];
    const pool = new WorkerPool(scope, Math.max(...WORKERS));
    const run = (queue: FilledQueue, workers: number): Promise<number> =>
      withCleanup(async (own) => {
        const options = await queue.open(own);
        return pool.drain({ ...options, workers, jobs: JOBS, seconds: SECONDS });
      });

    for (const workers of WORKERS) {
      const figures = await measureInterleaved(
        rounds,
        queues.map((queue) => ({ name: queue.name, measure: () => run(queue, workers) })),
      );
      const title = workers === 1 ? '1 worker process' : `${workers} worker processes`;
      report.figures(title, PER_SECOND, figures);
      if (bullmq !== undefined) {
        judge(bench, `public protocol, ${title}`, figures, open, [bullmq], 'BullMQ', BARS.public);
        judge(bench, `fast channel on SQLite, ${title}`, figures, fast, [bullmq], 'BullMQ', BARS.channel, 3);
      }
      judge(
        bench,
        `fast channel on PostgreSQL, ${title}`,
        figures,
        fastOnPostgres,
        [graphile, pgBoss],
        'the better of Graphile Worker and pg-boss',
        BARS.postgres,
        2,
      );
    }
  });
}

function judge(
  { report }: BenchContext,
  what: string,
  figures: Figures[],
  side: FilledQueue,
  peers: FilledQueue[],
  named: string,
  least: number,
  aim?: number,
): void {
  const best = peers
    .map(({ name }) => valuesOf(figures, name))
    .reduce((one, other) => (median(other) > median(one) ? other : one));
  const measured = ratio(valuesOf(figures, side.name), best);
  report.bar({
    part: 'drain',
    what,
    bar: `>= ${least} x ${named}${aim === undefined ? '' : ` (aim ${aim})`}`,
    measured: `${measured.toFixed(2)} x`,
    met: measured >= least,
  });
}
