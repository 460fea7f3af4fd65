import type { BenchContext } from './support/bench-context.ts';
import { JOB_BODY } from './support/job-body.ts';
import { HttpPool } from './support/http-connection.ts';
import { cpuSeconds, residentMegabytes } from './support/process-usage.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { quantile } from './support/statistics.ts';
import { WorkerPool } from './support/worker-pool.ts';

const WORKERS = 2_000;
/** The first poll of each, in which a server takes them in and compiles what it runs. */
const WARM_SECONDS = 25;
/** Two polls of each worker. */
const WATCH_SECONDS = 50;
/** CPU time is reported in steps of 10 ms. */
const ALONE_SECONDS = 25;
const JOBS_PER_SECOND = 200;
const JOB_SECONDS = 5;
const BARS = { processor: 0.02, memory: 100 };

export async function idle(bench: BenchContext): Promise<void> {
  const { report } = bench;
  report.part(
    'idle',
    `${WORKERS.toLocaleString('en-US')} idle workers on long polls, watched for ${WATCH_SECONDS} s`,
  );
  for (const stops of [false, true]) {
    const bare = await bareServerCpuShare(bench, stops);
    await withCleanup(async (scope) => {
      const { url, key, pid, endpointId } = await bench.berth(scope, 'SQLite');
      await pause(2);
      const alone = await cpuShare(pid, ALONE_SECONDS);
      const before = residentMegabytes(pid);
      const share = await cpuShareWithIdleWorkers(
        scope,
        { target: url, key, queue: endpointId, pollsCancellations: stops },
        pid,
      );
      const grown = residentMegabytes(pid) - before;
      const what = stops ? 'job-take and job-stop' : 'job-take';
      report.print(
        `\n${what}: ${percent(share)} of a core (alone ${percent(alone)}; a bare node:http server that ` +
          `holds the same polls and knows nobody: ${percent(bare)}), ${grown.toFixed(0)} MB more than ` +
          `the ${before.toFixed(0)} MB before`,
      );
      report.bar({
        part: 'idle',
        what: `processor, ${what}`,
        bar: '< 2 % of a core',
        measured: percent(share),
        met: share < BARS.processor,
      });
      report.bar({
        part: 'idle',
        what: `memory for them, ${what}`,
        bar: `< ${BARS.memory} MB`,
        measured: `${grown.toFixed(0)} MB`,
        met: grown < BARS.memory,
      });
      if (stops) return;
      const used = cpuSeconds(pid);
      const times = await sendSteadyJobs(url, key, endpointId);
      report.print(
        `${JOBS_PER_SECOND} jobs/s through them with runsync: ${times.length} ended, p50 ` +
          `${quantile(times, 0.5).toFixed(2)} ms, p99 ${quantile(times, 0.99).toFixed(2)} ms, ` +
          `${percent((cpuSeconds(pid) - used) / JOB_SECONDS)} of a core`,
      );
    });
  }
}

/** What the polls alone cost, on the least that a server in Node can be. */
function bareServerCpuShare(bench: BenchContext, stops: boolean): Promise<number> {
  return withCleanup(async (scope) => {
    const { url, pid } = await bench.bareLongPollServer(scope);
    return cpuShareWithIdleWorkers(
      scope,
      { target: url, key: 'none', queue: 'none', pollsCancellations: stops },
      pid,
    );
  });
}

async function cpuShareWithIdleWorkers(
  scope: CleanupScope,
  at: { target: string; key: string; queue: string; pollsCancellations: boolean },
  pid: number,
): Promise<number> {
  const pool = await new WorkerPool(scope, 1).prepare({
    role: 'idle',
    workers: 1,
    concurrency: WORKERS,
    ...at,
  });
  pool.start();
  scope.defer(() => pool.stop());
  await pause(WARM_SECONDS);
  return cpuShare(pid, WATCH_SECONDS);
}

/** Sends jobs at a steady pace, whatever becomes of them, and answers how long each took. */
async function sendSteadyJobs(url: string, key: string, endpointId: string): Promise<number[]> {
  const pool = new HttpPool(url, key, JOBS_PER_SECOND);
  const times: number[] = [];
  const sent: Promise<void>[] = [];
  const send = async (): Promise<void> => {
    const before = performance.now();
    const { status, body } = await pool.request('POST', `/v2/${endpointId}/runsync`, JOB_BODY);
    if (status !== 200 || !body.includes('"COMPLETED"'))
      throw new Error(`runsync answered ${status} ${body}`);
    times.push(performance.now() - before);
  };
  const began = performance.now();
  while (sent.length < JOBS_PER_SECOND * JOB_SECONDS) {
    await pause(0.005);
    const due = Math.min(
      JOBS_PER_SECOND * JOB_SECONDS,
      ((performance.now() - began) / 1000) * JOBS_PER_SECOND,
    );
    while (sent.length < due) sent.push(send());
  }
  await Promise.all(sent);
  pool.close();
  return times;
}

async function cpuShare(pid: number, seconds: number): Promise<number> {
  const [used, began] = [cpuSeconds(pid), performance.now()];
  await pause(seconds);
  return (cpuSeconds(pid) - used) / ((performance.now() - began) / 1000);
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
