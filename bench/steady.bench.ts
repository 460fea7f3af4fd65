import type { BenchContext } from './support/bench-context.ts';
import { JOB_BODY } from './support/job-body.ts';
import { PER_SECOND, ratio } from './support/bench-report.ts';
import { measureInterleaved, valuesOf } from './support/interleaved-rounds.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { WorkerPool } from './support/worker-pool.ts';
import { runLoad } from './support/wrk.ts';

const CLIENTS = 64;
/** So long after a start, what is forgotten keeps up with what comes. */
const FORGOTTEN_AFTER_SECONDS = 5;
const KEPT_SECONDS = 3_600;
const BAR = 0.8;
const KEPT = 'results that are kept';
const FORGOTTEN = 'results that are forgotten as fast as they come';

/**
 * A queue that runs for longer than its results are kept forgets as many jobs as it serves. The other parts
 * end before that.
 */
export async function steady(bench: BenchContext): Promise<void> {
  const { report, tools, rounds, seconds } = bench;
  report.part(
    'steady',
    `runsync of ${CLIENTS} clients on SQLite, one worker on the fast channel, for ${3 * seconds} s a round`,
  );
  if (!tools.wrk) return report.missingTool('wrk', 'apt install wrk', 'steady');
  const measured = (keptSeconds: number): Promise<number> =>
    withCleanup(async (scope) => {
      const { url, key, endpointId } = await bench.berth(scope, 'SQLite');
      const pool = await new WorkerPool(scope, 1).prepare({
        role: 'channel',
        workers: 1,
        target: url,
        key,
        queue: endpointId,
        concurrency: 100,
      });
      pool.start();
      scope.defer(() => pool.stop());
      const body = JSON.stringify({ ...(JSON.parse(JOB_BODY) as object), retention: keptSeconds * 1000 });
      const serve = (forSeconds: number) =>
        runLoad({
          url: `${url}/v2/${endpointId}/runsync`,
          key,
          body,
          connections: CLIENTS,
          seconds: forSeconds,
        });
      await serve(FORGOTTEN_AFTER_SECONDS + 1);
      return (await serve(3 * seconds)).perSecond;
    });
  const figures = await measureInterleaved(rounds, [
    { name: KEPT, measure: () => measured(KEPT_SECONDS) },
    { name: FORGOTTEN, measure: () => measured(FORGOTTEN_AFTER_SECONDS) },
  ]);
  report.figures('calls answered', PER_SECOND, figures);
  const share = ratio(valuesOf(figures, FORGOTTEN), valuesOf(figures, KEPT));
  report.bar({
    part: 'steady',
    what: 'calls answered while others are forgotten, of those that are kept',
    bar: `>= ${BAR}`,
    measured: share.toFixed(2),
    met: share >= BAR,
  });
}
