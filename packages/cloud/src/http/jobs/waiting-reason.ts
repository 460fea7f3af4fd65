import type { JobQueue } from '../../queue/job-queue.ts';
import type { Job, WorkerHeartbeat } from '../../domain/job-records.ts';

/** Counts above this are not exact. */
const MAX_COUNTED_AHEAD = 1000;

/** Why a job still waits. `fleetReason` says why there are no workers. */
export async function waitingReason(
  queue: JobQueue,
  job: Job,
  fleetReason: () => string | undefined,
): Promise<string> {
  const workers = await queue.workers(job.endpointId);
  const healthy = workers.filter(({ unhealthy }) => unhealthy === null);
  if (healthy.length === 0) {
    const unhealthy = workers.find((worker) => worker.unhealthy !== null)?.unhealthy;
    return (
      fleetReason() ??
      (unhealthy === undefined || unhealthy === null
        ? 'no worker is connected to this endpoint'
        : `no healthy worker is connected; the last one reported: ${unhealthy}`)
    );
  }
  const ahead = await queue.countAhead(job, MAX_COUNTED_AHEAD + 1);
  if (ahead === 0) return `next in line: ${workerActivity(healthy)}`;
  return (
    `held behind ${ahead > MAX_COUNTED_AHEAD ? `more than ${MAX_COUNTED_AHEAD}` : ahead} ` +
    `${ahead === 1 ? 'job' : 'jobs'}`
  );
}

/** The state of the workers while a job waits. An idle worker only has to take it. */
function workerActivity(workers: readonly WorkerHeartbeat[]): string {
  const busy = workers.filter((worker) => worker.busy > 0).length;
  const idle = workers.length - busy;
  const reasons = [];
  if (busy > 0) reasons.push(busy === 1 ? '1 worker is busy' : `${busy} workers are busy`);
  if (idle > 0)
    reasons.push(
      idle === 1
        ? '1 worker is idle and has not asked for a job yet'
        : `${idle} workers are idle and have not asked for a job yet`,
    );
  return reasons.join(', ');
}
