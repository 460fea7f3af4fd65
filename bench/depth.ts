import { cpSync } from 'node:fs';
import type { Bench } from './support/bench.ts';
import { createEndpoint, startBerth } from './support/berth.ts';
import type { Berth } from './support/berth.ts';
import { fillQueue } from './support/fill.ts';
import { JOB_BODY } from './support/job-body.ts';
import { residentMegabytes } from './support/process-figures.ts';
import { PER_SECOND, ratio } from './support/report.ts';
import { interleaved, valuesOf } from './support/rounds.ts';
import { settle } from './support/settle.ts';
import type { Stage } from './support/stage.ts';
import { onStage } from './support/stage.ts';
import { WorkerPool } from './support/worker-pool.ts';
import { load } from './support/wrk.ts';

const SHALLOW = 1_000;
const DEEP = 1_000_000;
const WORKERS = 4;
const BARS = { rate: 0.8, memory: 400 };

interface Filled {
  name: string;
  data: string;
  endpointId: string;
}

/** A million jobs are queued through the store before the server starts; `/run` would need minutes for them. */
async function filled(stage: Stage, jobs: number): Promise<Filled> {
  const place = { data: stage.folder('depth'), database: '' };
  const first = await startBerth(place);
  const endpointId = await createEndpoint(first, 'bench');
  await first.stop();
  await fillQueue(place, endpointId, jobs);
  return { name: `${jobs.toLocaleString('en-US')} queued`, data: place.data, endpointId };
}

export async function depth(bench: Bench): Promise<void> {
  const { report, tools, rounds, seconds } = bench;
  report.part(
    'depth',
    `rates at ${SHALLOW.toLocaleString('en-US')} and at ${DEEP.toLocaleString('en-US')} queued jobs on SQLite, which were put there through the store before the start`,
  );
  if (!tools.wrk) return report.lacks('wrk', 'apt install wrk', 'depth');
  await onStage(async (stage) => {
    const [shallow, deep] = [await filled(stage, SHALLOW), await filled(stage, DEEP)];
    const pool = new WorkerPool(stage, WORKERS);
    let memory = 0;

    /** The deep queue hardly notices a round, so only the shallow one starts anew each time. */
    const measured = (queue: Filled, work: (berth: Berth) => Promise<number>): Promise<number> =>
      onStage(async (run) => {
        let { data } = queue;
        if (queue === shallow) {
          data = run.folder('depth');
          cpSync(queue.data, data, { recursive: true });
        }
        await settle();
        const berth = await startBerth({ data, database: '' });
        run.onEnd(berth.stop);
        const perSecond = await work(berth);
        if (queue === deep) memory = Math.max(memory, residentMegabytes(berth.pid));
        return perSecond;
      });

    const accepting =
      (queue: Filled) =>
      async ({ url, key }: Berth) =>
        (
          await load({
            url: `${url}/v2/${queue.endpointId}/run`,
            key,
            body: JOB_BODY,
            connections: 64,
            seconds,
          })
        ).perSecond;
    // Each job that ends is replaced by a new one, so that the depth stays what it is.
    const draining =
      (queue: Filled) =>
      ({ url, key }: Berth) =>
        pool.drain({
          role: 'channel',
          workers: WORKERS,
          at: url,
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
      const figures = await interleaved(
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
    report.say(
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
