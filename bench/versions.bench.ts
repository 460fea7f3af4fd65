import type { BenchContext } from './support/bench-context.ts';
import { formatValue, PER_SECOND, MICROSECONDS, ratio } from './support/bench-report.ts';
import { createEndpoint, startBerth } from './support/berth-process.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import type { Contender } from './support/interleaved-rounds.ts';
import { measureInterleaved, valuesOf } from './support/interleaved-rounds.ts';
import { JOB_BODY } from './support/job-body.ts';
import { cpuSeconds } from './support/process-usage.ts';
import { repositoryPath } from './support/repository-path.ts';
import { runLoad } from './support/wrk.ts';

const CONNECTIONS = 64;
const WARM_SECONDS = 2;
const MOST_LOST = 0.05;
const [THIS, OTHER] = ['this checkout', 'the other'];

/**
 * Accepting jobs on SQLite by this checkout and by another one (`--other FOLDER`). Each round starts a new
 * server of each: two servers of the same code differ by up to 9 % for as long as they run.
 */
export async function versions({ report, tools, rounds, seconds, other }: BenchContext): Promise<void> {
  report.part('versions', `POST /run over ${CONNECTIONS} connections, ${seconds} s a round`);
  if (other === undefined) {
    report.print('skipped: name the folder of another checkout with --other');
    return;
  }
  if (!tools.wrk) return report.missingTool('wrk', 'apt install wrk', 'versions');
  const costs = { [THIS]: [] as number[], [OTHER]: [] as number[] };
  const side = (name: string, checkout: string): Contender => ({
    name,
    measure: () =>
      withCleanup(async (scope) => {
        // Earlier versions have no virtual GPUs.
        const env = { BERTH_GPUS: 'none' };
        const berth = await startBerth({ data: scope.folder('data'), database: '', env, checkout });
        scope.defer(berth.stop);
        const { url, key, pid } = berth;
        const endpointId = await createEndpoint(berth, 'bench');
        const load = { url: `${url}/v2/${endpointId}/run`, key, body: JOB_BODY, connections: CONNECTIONS };
        await runLoad({ ...load, seconds: WARM_SECONDS });
        const before = cpuSeconds(pid);
        const { perSecond, requests } = await runLoad({ ...load, seconds });
        costs[name]?.push(((cpuSeconds(pid) - before) / requests) * 1e6);
        return perSecond;
      }),
  });
  const figures = await measureInterleaved(rounds, [side(THIS, repositoryPath('')), side(OTHER, other)]);
  report.figures('jobs accepted', PER_SECOND, figures);
  report.figures(
    'processor time for each, of the server process',
    MICROSECONDS,
    Object.entries(costs).map(([name, values]) => ({ name, values })),
  );
  const ofOther = ratio(valuesOf(figures, THIS), valuesOf(figures, OTHER));
  report.bar({
    part: 'versions',
    what: 'jobs accepted, of the other checkout',
    bar: `>= ${1 - MOST_LOST}`,
    measured: formatValue(ofOther, { name: '', digits: 2 }),
    met: ofOther >= 1 - MOST_LOST,
  });
}
