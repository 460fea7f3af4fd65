import type { Bench, Database } from './support/bench.ts';
import { JOB_BODY } from './support/job-body.ts';
import { MILLISECONDS } from './support/report.ts';
import type { Figures } from './support/report.ts';
import type { Stage } from './support/stage.ts';
import { onStage } from './support/stage.ts';
import { median } from './support/statistics.ts';
import { WorkerPool } from './support/worker-pool.ts';
import { load } from './support/wrk.ts';
import { startPythonServer } from './peers/python-server.ts';

const CLIENTS = [1, 64];
const BARS = { p50: 8, p99: 30 };
const ECHO = 'bare HTTP round trip';

interface Target {
  name: string;
  url: string;
  key?: string;
}

export async function latency(bench: Bench): Promise<void> {
  const { report, tools, rounds, seconds } = bench;
  report.part('latency', `warm runsync with one idle worker on the fast channel, ${seconds} s a round`);
  if (!tools.wrk) return report.lacks('wrk', 'apt install wrk', 'latency');
  await onStage(async (stage) => {
    const targets: Target[] = [{ name: ECHO, ...(await bench.echo(stage)) }, await runsync(bench, stage, 'SQLite'), await runsync(bench, stage, 'PostgreSQL')];
    const python = await bench.pythonSdk();
    if ('path' in python) targets.push({ name: "the Python SDK's local server", url: `${(await startPythonServer(stage, python.path)).url}/runsync` });
    else report.lacks('the Python worker SDK', python.reason, 'latency beside its local server');
    for (const { url, key } of targets) await load({ url, body: JOB_BODY, connections: 4, seconds: 1, ...(key !== undefined && { key }) });

    for (const clients of CLIENTS) {
      const figures = targets.map(({ name }) => ({ name, p50: [] as number[], p99: [] as number[] }));
      for (let round = 0; round < rounds; round += 1) {
        for (const [index, { url, key }] of targets.entries()) {
          const { p50, p99 } = await load({ url, body: JOB_BODY, connections: clients, seconds, ...(key !== undefined && { key }) });
          figures[index]?.p50.push(p50);
          figures[index]?.p99.push(p99);
        }
      }
      const title = clients === 1 ? '1 client' : `${clients} clients`;
      const [sides50, sides99] = [figures.map(({ name, p50 }): Figures => ({ name, values: p50 })), figures.map(({ name, p99 }): Figures => ({ name, values: p99 }))];
      report.figures(`${title}, p50`, MILLISECONDS, sides50);
      report.figures(`${title}, p99`, MILLISECONDS, sides99);
      const roundTrip = median(sides50[0]?.values ?? []);
      for (const [name, sides] of [['p50', sides50], ['p99', sides99]] as const) {
        const inRoundTrips = sides.slice(1).map(({ name: side, values }) => `${side} ${(median(values) / roundTrip).toFixed(1)}`);
        report.say(`${title}, ${name} in round trips of ${roundTrip.toFixed(3)} ms: ${inRoundTrips.join(', ')}`);
        if (clients !== 1) continue;
        const measured = median(sides[1]?.values ?? []) / roundTrip;
        report.bar({ part: 'latency', what: `runsync on SQLite, ${title}, ${name}`, bar: `<= ${BARS[name]} round trips`, measured: measured.toFixed(1), met: measured <= BARS[name] });
      }
    }
  });
}

async function runsync(bench: Bench, stage: Stage, database: Database): Promise<Target> {
  const { url, key, endpointId } = await bench.berth(stage, database);
  const crew = await new WorkerPool(stage, 1).crew({ role: 'channel', workers: 1, at: url, key, queue: endpointId, concurrency: 100 });
  crew.start();
  stage.onEnd(() => crew.stop());
  return { name: `runsync, ${database}`, url: `${url}/v2/${endpointId}/runsync`, key };
}
