import type { WorkerHeartbeat } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import { isRecent } from '../support/clock.ts';
import type { PairMap } from '../support/pair-map.ts';
import { WORKER_TIMEOUT_MS } from './connected-worker.ts';
import type { ConnectedWorker } from './connected-worker.ts';

/** How often heartbeats are stored for the other servers. */
const FLUSH_EVERY_MS = 5_000;
/** An idle worker without changes is stored less often: at half of the silence limit. */
const FLUSH_IDLE_EVERY_MS = 15_000;
/** After this long a silent worker is forgotten. */
const FORGET_TIMED_OUT_MS = 2 * WORKER_TIMEOUT_MS;
/**
 * A dismissed worker would get jobs again if it were forgotten too early. Its end is normally reported; where
 * that never happens, it has ended by now.
 */
const FORGET_DRAINED_MS = 24 * 3_600_000;

/**
 * Stores the heartbeats of workers for the other servers, and forgets workers that have been silent for long.
 */
export class HeartbeatFlush {
  readonly #workers: PairMap<string, string, ConnectedWorker>;
  #lastAt = 0;

  constructor(workers: PairMap<string, string, ConnectedWorker>) {
    this.#workers = workers;
  }

  /** Called often; stores at most every few seconds. */
  async run(store: Pick<JobStore, 'saveHeartbeats'>, now: number): Promise<void> {
    if (isRecent(this.#lastAt, FLUSH_EVERY_MS, now)) return;
    this.#lastAt = now;
    const summary: { worker: ConnectedWorker; asWaiting: string; record: WorkerHeartbeat }[] = [];
    for (const worker of this.#workers.values()) {
      if (worker.openRequests > 0) worker.seenAt = now;
      else if (now - worker.seenAt > forgetAfter(worker) && worker.jobs.size === 0)
        this.#workers.delete(worker.endpointId, worker.workerId);
      if (worker.flushed && worker.openRequests === 0) continue;
      const asWaiting = worker.openRequests > 0 ? `${worker.jobs.size} ${worker.unhealthy ?? ''}` : '';
      if (
        asWaiting !== '' &&
        asWaiting === worker.flushedState &&
        isRecent(worker.flushedAt, FLUSH_IDLE_EVERY_MS, now)
      )
        continue;
      // What is heard from here on is stored the next time.
      worker.flushed = true;
      summary.push({
        worker,
        asWaiting,
        record: {
          endpointId: worker.endpointId,
          workerId: worker.workerId,
          seenAt: worker.seenAt,
          busy: worker.jobs.size,
          unhealthy: worker.unhealthy,
          accelerated: worker.accelerated,
        },
      });
    }
    if (summary.length === 0) return;
    try {
      await store.saveHeartbeats(summary.map(({ record }) => record));
    } catch (error) {
      for (const { worker } of summary) worker.flushed = false;
      throw error;
    }
    for (const { worker, asWaiting } of summary) {
      worker.flushedAt = now;
      worker.flushedState = asWaiting;
    }
  }
}

/** How long a worker is remembered that holds no jobs and is silent. */
function forgetAfter({ pausedUntil }: ConnectedWorker): number {
  return pausedUntil === Infinity ? FORGET_DRAINED_MS : FORGET_TIMED_OUT_MS;
}
