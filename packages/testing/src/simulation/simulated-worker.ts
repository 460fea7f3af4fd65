import { seqFromJobId } from '../../../cloud/src/domain/job-ids.ts';
import type { TakenJob } from '../../../cloud/src/domain/job-records.ts';
import type { JobQueue } from '../../../cloud/src/queue/job-queue.ts';
import type { CancelSignal } from '../../../cloud/src/support/cancel-signal.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { InstanceProgram } from './simulated-engine.ts';
import type { Reachable, SimulatedNetwork } from './simulated-network.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

/** As the routes of the worker protocol have it. */
const LONG_POLL_MS = 24_000;
const REQUEST_TIMEOUT_MS = 30_000;
const POST_ATTEMPTS = 8;
const STARTUP_MS = 800;

export interface WorkerServer extends Reachable {
  readonly queue: JobQueue | undefined;
}

export interface SimulatedWorkerDeps {
  time: VirtualTime;
  random: SeededRandom;
  network: SimulatedNetwork;
  servers: readonly WorkerServer[];
  endpointId: string;
  id: string;
  exit(exitCode: number): void;
  /** How long a job of this endpoint takes, and whether it fails. */
  jobDuration(): number;
  trace(line: string): void;
}

/** What a worker writes as the output of an attempt, so that its origin is known. */
export function resultOf(workerId: string, jobId: string, lease: string): string {
  return JSON.stringify(`${workerId} ${jobId} ${lease}`);
}

/**
 * A worker as the SDKs are: it polls for jobs, runs them, posts results until somebody has them, pings, and
 * polls for cancellations. With `hasLeases` it names the lease of its results, as the channel does.
 */
export class SimulatedWorker implements InstanceProgram {
  readonly process: SimulatedProcess = { frozenUntil: 0, hasCrashed: false };
  readonly id: string;
  readonly endpointId: string;
  readonly running = new Map<string, { lease: string; since: number; isCancelled: boolean }>();
  readonly hasLeases: boolean;
  readonly #deps: SimulatedWorkerDeps;
  readonly #concurrency: number;
  #isStopping = false;

  constructor(deps: SimulatedWorkerDeps) {
    this.#deps = deps;
    this.id = deps.id;
    this.endpointId = deps.endpointId;
    this.#concurrency = deps.random.pick([1, 1, 2]) ?? 1;
    this.hasLeases = deps.random.chance(0.5);
    deps.time.runIn(this.process, () => {
      void this.#main();
    });
  }

  get isAlive(): boolean {
    return !this.process.hasCrashed;
  }

  stop(graceMs: number): void {
    this.#isStopping = true;
    const { time, random, exit } = this.#deps;
    time.after(random.next() * Math.min(graceMs, 2_000), this.process, () => exit(0));
  }

  kill(): void {
    this.process.hasCrashed = true;
  }

  async #main(): Promise<void> {
    const { time, random } = this.#deps;
    await time.sleep(random.next() * STARTUP_MS, this.process);
    for (let loop = 0; loop < this.#concurrency; loop += 1) void this.#takeLoop();
    void this.#pingLoop();
    void this.#cancellationLoop();
  }

  async #takeLoop(): Promise<void> {
    while (!this.#isStopping) {
      try {
        for (const job of await this.#request((queue, signal) => this.#take(queue, signal)))
          await this.#run(job);
      } catch {
        await this.#pause(500, 2_000);
      }
    }
  }

  async #take(queue: JobQueue, signal: CancelSignal): Promise<TakenJob[]> {
    const { endpointId, id } = this;
    const left = queue.heartbeats.requestStarted(endpointId, id);
    try {
      queue.heartbeats.recordTake(endpointId, id, this.running.size === 0);
      const taken = await queue.take(endpointId, id, 1, LONG_POLL_MS, signal);
      if (!signal.aborted) return taken;
      await queue.returnTaken(endpointId, taken);
      return [];
    } finally {
      left();
    }
  }

  async #run({ job }: TakenJob): Promise<void> {
    const { time, random, jobDuration, trace } = this.#deps;
    const lease = job.lease ?? '';
    const attempt = { lease, since: time.now, isCancelled: false };
    this.running.set(job.id, attempt);
    trace(`worker ${this.id} runs ${job.id} under ${lease}`);
    const endsAt = time.now + jobDuration();
    while (time.now < endsAt && !attempt.isCancelled)
      await time.sleep(Math.min(1_000, endsAt - time.now), this.process);
    if (!attempt.isCancelled) {
      const fails = random.chance(0.1);
      const result = resultOf(this.id, job.id, lease);
      await this.#post(
        job.id,
        lease,
        fails ? { output: null, error: result } : { output: result, error: null },
      );
    }
    if (this.running.get(job.id) === attempt) this.running.delete(job.id);
  }

  /** Repeats until a server has it. */
  async #post(
    jobId: string,
    lease: string,
    result: { output: string | null; error: string | null },
  ): Promise<void> {
    const { endpointId, id } = this;
    const seq = seqFromJobId(jobId) ?? 0;
    for (let attempt = 0; attempt < POST_ATTEMPTS; attempt += 1) {
      try {
        await this.#request(async (queue) => {
          const left = queue.heartbeats.requestStarted(endpointId, id);
          try {
            const holder = this.hasLeases ? { workerId: id, lease } : { workerId: id, jobId };
            await queue.finish(endpointId, seq, holder, result);
            queue.cancellations.remove(endpointId, id, jobId);
          } finally {
            left();
          }
        }, true);
        return;
      } catch {
        await this.#pause(200, 4_000);
      }
    }
  }

  async #pingLoop(): Promise<void> {
    for (;;) {
      await this.#pause(4_000, 10_000);
      const jobs = [...this.running.keys()];
      await this.#request(async ({ heartbeats, cancellations }) => {
        heartbeats.requestStarted(this.endpointId, this.id)();
        heartbeats.recordRunningJobs(this.endpointId, this.id, jobs);
        cancellations.recordRunningJobs(this.endpointId, this.id, jobs);
      }, true).catch(() => undefined);
    }
  }

  async #cancellationLoop(): Promise<void> {
    for (;;) {
      try {
        const jobs = await this.#request((queue, signal) =>
          queue.waitForCancellations(this.endpointId, this.id, LONG_POLL_MS, signal),
        );
        for (const jobId of jobs) {
          const attempt = this.running.get(jobId);
          if (attempt !== undefined) attempt.isCancelled = true;
        }
        if (jobs.length > 0) await this.#pause(100, 500);
      } catch {
        await this.#pause(1_000, 3_000);
      }
    }
  }

  /** Of any server that answers: a load balancer stands in front of them. */
  #request<T>(handle: (queue: JobQueue, signal: CancelSignal) => Promise<T>, mayRepeat = false): Promise<T> {
    const { network, servers, random } = this.#deps;
    const up = servers.filter(({ process }) => process !== undefined);
    const server = random.pick(up.length > 0 ? up : servers) as WorkerServer;
    const { queue } = server;
    return network.request(this.process, server, { timeout: REQUEST_TIMEOUT_MS, mayRepeat }, (signal) =>
      handle(queue as JobQueue, signal),
    );
  }

  #pause(least: number, most: number): Promise<void> {
    const { time, random } = this.#deps;
    return time.sleep(random.between(least, most), this.process);
  }
}
