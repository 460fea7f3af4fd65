import type { WorkerHeartbeats } from './worker-heartbeats.ts';

/**
 * The public Python SDK sleeps this long between two requests for jobs, however quickly it ends what it got.
 */
const SDK_SLEEP_MS = 1_000;
/** The SDK starts the first job of an answer up to this much later. */
const SDK_PICKUP_MS = 100;
/** So many of the last jobs say how long the next ones may take. */
const SAMPLES = 20;
/**
 * The time of a first job includes the pickup. That of a job after it does not, and counts once there are so
 * many.
 */
const MIN_FOLLOWERS = 3;
/** One job of this length is enough to make others wait for too long: the longest decides then. */
const LONG_MS = SDK_SLEEP_MS / 2;
/**
 * Otherwise the mean decides, but a single job may take at most so many times as long as is reckoned for
 * each.
 */
const SPREAD = 10;
const MAX_JOBS = 400;
/** The clock counts whole milliseconds. */
const MIN_RUN_MS = 1;

interface EndpointTimes {
  /** Run times of jobs that were the first of an answer, with the time until the SDK started them. */
  first: number[];
  /** Run times of jobs that started when the one before them ended. */
  followers: number[];
  /** A worker asked to be replaced after a job: each job there may count on a new worker. */
  refreshes: boolean;
}

/**
 * How many jobs one answer to `job-take` may carry. The public Python SDK accepts a list there and runs its
 * jobs one after the other, but asks for more only once a second. So it gets as many as should end within
 * that second, judged by the last jobs of the endpoint; one where they are long or nothing is known of them.
 */
export class TakeAhead {
  readonly #heartbeats: WorkerHeartbeats;
  readonly #isOn: boolean;
  readonly #endpoints = new Map<string, EndpointTimes>();

  constructor(heartbeats: WorkerHeartbeats, isOn: boolean) {
    this.#heartbeats = heartbeats;
    this.#isOn = isOn;
  }

  /**
   * How many jobs this worker may get in one answer. The dispatcher shares what there is among all that wait.
   */
  roomFor(endpointId: string, workerId: string, userAgent: string | undefined): number {
    if (!this.#isOn || !acceptsListOnJobTake(userAgent)) return 1;
    if (this.#heartbeats.takesBatches(endpointId, workerId)) return 1;
    const room = this.#room(endpointId);
    // It runs one at a time, in order: of several jobs only the oldest can have been started.
    if (room > 1) this.#heartbeats.recordConcurrency(endpointId, workerId, 1);
    return room;
  }

  /**
   * A worker posts the result of a job. Answers how long the job waited in the worker before it started: jobs
   * of one answer run one after the other, so each starts when the one before it ends.
   */
  onResult(endpointId: string, workerId: string, seq: number, refresh: boolean): number {
    const run = this.#heartbeats.recordResult(endpointId, workerId, seq);
    if (!this.#isOn || run === undefined) return 0;
    const { takenAt, startedAt, endedAt } = run;
    const times = this.#timesOf(endpointId);
    times.refreshes ||= refresh;
    const samples = startedAt === takenAt ? times.first : times.followers;
    samples.push(endedAt - startedAt);
    if (samples.length > SAMPLES) samples.shift();
    return startedAt - takenAt;
  }

  removeEndpoint(endpointId: string): void {
    this.#endpoints.delete(endpointId);
  }

  #room(endpointId: string): number {
    const times = this.#endpoints.get(endpointId);
    if (times === undefined || times.refreshes || times.first.length === 0) return 1;
    const samples = times.followers.length < MIN_FOLLOWERS ? times.first : times.followers;
    const longest = Math.max(...samples, ...times.first.filter((time) => time > LONG_MS));
    const perJob =
      samples === times.first || longest > LONG_MS ? longest : Math.max(mean(samples), longest / SPREAD);
    const fitting = Math.floor((SDK_SLEEP_MS - SDK_PICKUP_MS) / Math.max(perJob, MIN_RUN_MS));
    return Math.min(MAX_JOBS, Math.max(1, fitting));
  }

  #timesOf(endpointId: string): EndpointTimes {
    let times = this.#endpoints.get(endpointId);
    if (times === undefined) {
      times = { first: [], followers: [], refreshes: false };
      this.#endpoints.set(endpointId, times);
    }
    return times;
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * The versions that were tried: 1.7.0 takes one job an answer, and nothing is known of later ones than 1.12.
 */
export function acceptsListOnJobTake(userAgent: string | undefined): boolean {
  const [, minor, patch] = /^RunPod-Python-SDK\/1\.(\d+)\.(\d+)/.exec(userAgent ?? '') ?? [];
  return minor === '7' ? Number(patch) >= 13 : Number(minor) >= 8 && Number(minor) <= 12;
}
