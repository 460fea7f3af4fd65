import type { BenchContext, Database } from './support/bench-context.ts';
import { JOB_BODY } from './support/job-body.ts';
import { MILLISECONDS } from './support/bench-report.ts';
import type { Report } from './support/bench-report.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { median } from './support/statistics.ts';
import { WorkerPool } from './support/worker-pool.ts';
import { runLoad } from './support/wrk.ts';
import type { LoadResult } from './support/wrk.ts';
import { startPythonServer } from './peers/python-server.ts';

const CLIENTS = [1, 64];
/**
 * Until then the servers still compile what they run, and each second is quicker than the one before. Most of these
 * calls come from many clients at once: one after the other they took a minute for each side.
 */
const WARM_CALLS = 40_000;
const WARM_CLIENTS = 64;
const WARM_STEP_SECONDS = 3;
const WARM_SECONDS = 12;
const BARS = { p50: 8, p99: 30 };
const ECHO = 'bare HTTP round trip';

interface Target {
  name: string;
  /** Of Berth. */
  database?: Database;
  url: string;
  key?: string;
}

/** What one side took in each round, by how many clients asked, beside the bare server in the same rounds. */
interface Measured {
  name: string;
  database: Database | undefined;
  times: Map<number, { p50: number[]; p99: number[]; bare50: number[]; bare99: number[] }>;
}

export async function latency(bench: BenchContext): Promise<void> {
  const { report, tools, seconds } = bench;
  report.part(
    'latency',
    `warm runsync with one idle worker on the fast channel, ${seconds} s a round, each side alone with the bare server`,
  );
  if (!tools.wrk) return report.missingTool('wrk', 'apt install wrk', 'latency');
  for (const database of ['SQLite', 'PostgreSQL'] as const)
    printTimes(report, await measure(bench, (scope) => runsync(bench, scope, database)));
  // Last: where it is not there yet, it takes minutes to install.
  const python = await bench.pythonSdk();
  if ('reason' in python)
    return report.missingTool('the Python worker SDK', python.reason, 'latency beside its local server');
  const local = await measure(bench, async (scope) => ({
    name: "the Python SDK's local server",
    url: `${(await startPythonServer(scope, python.path)).url}/runsync`,
  }));
  printTimes(report, local);
}

function printTimes(report: Report, { name: side, database, times }: Measured): void {
  for (const [clients, found] of times) {
    const title = clients === 1 ? '1 client' : `${clients} clients`;
    for (const [name, bare] of [
      ['p50', 'bare50'],
      ['p99', 'bare99'],
    ] as const) {
      report.figures(`${title}, ${name}`, MILLISECONDS, [
        { name: `${ECHO} beside it`, values: found[bare] },
        { name: side, values: found[name] },
      ]);
      const measured = median(found[name]) / median(found.bare50);
      report.print(`${title}, ${name} in round trips: ${side} ${measured.toFixed(1)}`);
      if (clients === 1 && database === 'SQLite')
        report.bar({
          part: 'latency',
          what: `runsync on SQLite, ${title}, ${name}`,
          bar: `<= ${BARS[name]} round trips`,
          measured: measured.toFixed(1),
          met: measured <= BARS[name],
        });
    }
  }
}

/** Nothing else runs meanwhile: a database that only waits wakes up now and then, and two cores are few. */
function measure(bench: BenchContext, start: (scope: CleanupScope) => Promise<Target>): Promise<Measured> {
  const { rounds, seconds } = bench;
  return withCleanup(async (scope) => {
    const [bare, target] = [await bench.bareHttpServer(scope), await start(scope)];
    const ask = ({ url, key }: Pick<Target, 'url' | 'key'>, connections: number, forSeconds: number) =>
      runLoad({ url, body: JOB_BODY, connections, seconds: forSeconds, ...(key !== undefined && { key }) });
    for (const one of [bare, target]) await warmUp((clients, forSeconds) => ask(one, clients, forSeconds));
    const times: Measured['times'] = new Map();
    for (const clients of CLIENTS) {
      const found = {
        p50: [] as number[],
        p99: [] as number[],
        bare50: [] as number[],
        bare99: [] as number[],
      };
      for (let round = 0; round < rounds; round += 1) {
        const [roundTrip, call] = [await ask(bare, clients, seconds), await ask(target, clients, seconds)];
        found.bare50.push(roundTrip.p50);
        found.bare99.push(roundTrip.p99);
        found.p50.push(call.p50);
        found.p99.push(call.p99);
      }
      times.set(clients, found);
    }
    return { name: target.name, database: target.database, times };
  });
}

async function warmUp(ask: (clients: number, seconds: number) => Promise<LoadResult>): Promise<void> {
  let calls = 0;
  for (let spent = 0; calls < WARM_CALLS && spent < WARM_SECONDS; spent += WARM_STEP_SECONDS)
    calls += (await ask(WARM_CLIENTS, WARM_STEP_SECONDS)).requests;
  await ask(1, WARM_STEP_SECONDS);
}

async function runsync(bench: BenchContext, scope: CleanupScope, database: Database): Promise<Target> {
  const { url, key, endpointId } = await bench.berth(scope, database);
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
  return { name: `runsync, ${database}`, database, url: `${url}/v2/${endpointId}/runsync`, key };
}
