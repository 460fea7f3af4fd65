import { cpSync } from 'node:fs';
import type { BenchContext } from './support/bench-context.ts';
import { createEndpoint, startBerth } from './support/berth-process.ts';
import type { BerthProcess } from './support/berth-process.ts';
import { fillQueue } from './support/fill-queue.ts';
import { JOB_BODY } from './support/job-body.ts';
import { residentMegabytes } from './support/process-usage.ts';
import { PER_SECOND, ratio } from './support/bench-report.ts';
import { measureInterleaved, valuesOf } from './support/interleaved-rounds.ts';
import { waitUntilIdle } from './support/wait-until-idle.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { WorkerPool } from './support/worker-pool.ts';
import { runLoad } from './support/wrk.ts';

const SHALLOW = 1_000;
const DEEP = 1_000_000;
const WORKERS = 4;
const BARS = { rate: 0.8, memory: 400 };

interface FilledData {
  name: string;
  data: string;
  endpointId: string;
}

/**
 * A million jobs are queued through the store before the server starts; `/run` would need minutes for them.
 */
async function createFilledQueue(scope: CleanupScope, jobs: number): Promise<FilledData> {
  const place = { data: scope.folder('depth'), database: '' };
  const first = await startBerth(place);
  const endpointId = await createEndpoint(first, 'bench');
  await first.stop();
  await fillQueue(place, endpointId, jobs);
  return { name: `${jobs.toLocaleString('en-US')} queued`, data: place.data, endpointId };
}

export async function depth(bench: BenchContext): Promise<void> {
  const { report, tools, rounds, seconds } = bench;
  report.part(
    'depth',
    `rates at ${SHALLOW.toLocaleString('en-US')} and at ${DEEP.toLocaleString('en-US')} queued jobs on ` +
      'SQLite, which were put there through the store before the start',
  );
  if (!tools.wrk) return report.missingTool('wrk', 'apt install wrk', 'depth');
  await withCleanup(async (scope) => {
    const [shallow, deep] = [await createFilledQueue(scope, SHALLOW), await createFilledQueue(scope, DEEP)];
    const pool = new WorkerPool(scope, WORKERS);
    let memory = 0;

    /** The deep queue hardly notices a round, so only the shallow one is refilled each time. */
    const measured = (queue: FilledData, work: (berth: BerthProcess) => Promise<number>): Promise<number> =>
      withCleanup(async (run) => {
        let { data } = queue;
        if (queue === shallow) {
          data = run.folder('depth');
          cpSync(queue.data, data, { recursive: true });
        }
        await waitUntilIdle();
        const berth = await startBerth({ data, database: '' });
        run.defer(berth.stop);
        const perSecond = await work(berth);
        if (queue === deep) memory = Math.max(memory, residentMegabytes(berth.pid));
        return perSecond;
      });

    const accepting =
      (queue: FilledData) =>
      async ({ url, key }: BerthProcess) =>
        (
          await runLoad({
            url: `${url}/v2/${queue.endpointId}/run`,
            key,
            body: JOB_BODY,
            connections: 64,
            seconds,
          })
        ).perSecond;
    // Each job that ends is replaced by a new one, so that the depth stays what it is.
    const draining =
      (queue: FilledData) =>
      ({ url, key }: BerthProcess) =>
        pool.drain({
          role: 'channel',
          workers: WORKERS,
          target: url,
          key,
          queue: queue.endpointId,
          concurrency: 100,
          refill: true,
          jobs: Infinity,
          seconds,
        });
    for (const [what, work] of [
      ['jobs accepted', accepting],
      ['jobs drained, each replaced by a new one', draining],
    ] as const) {
      const figures = await measureInterleaved(
        rounds,
        [shallow, deep].map((queue) => ({ name: queue.name, measure: () => measured(queue, work(queue)) })),
      );
      report.figures(what, PER_SECOND, figures);
      const share = ratio(valuesOf(figures, deep.name), valuesOf(figures, shallow.name));
      report.bar({
        part: 'depth',
        what: `${what}, deep of shallow`,
        bar: `>= ${BARS.rate}`,
        measured: share.toFixed(2),
        met: share >= BARS.rate,
      });
    }
    report.print(
      `\nresident memory of the server with a million queued jobs, the most of all rounds: ${memory.toFixed(0)} MB`,
    );
    report.bar({
      part: 'depth',
      what: 'resident memory, a million queued',
      bar: `< ${BARS.memory} MB`,
      measured: `${memory.toFixed(0)} MB`,
      met: memory < BARS.memory,
    });
  });
}
