import type { Job, JobOutcome } from '../../../cloud/src/domain/job-records.ts';
import type { Endpoint } from '../../../cloud/src/domain/records.ts';
import type { JobQueue } from '../../../cloud/src/queue/job-queue.ts';
import type { JobOptions } from '../../../cloud/src/queue/job-submission.ts';
import type { CancelSignal } from '../../../cloud/src/support/cancel-signal.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import { EARLY_MS, EARLY_SHARE, InvariantViolation } from './job-model.ts';
import type { JobModel, ModelJob } from './job-model.ts';
import { WEBHOOK_URL } from './simulated-receiver.ts';
import type { SimulatedNetwork } from './simulated-network.ts';
import type { WorkerServer } from './simulated-worker.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

export interface SimulatedClientDeps {
  time: VirtualTime;
  random: SeededRandom;
  network: SimulatedNetwork;
  servers: readonly WorkerServer[];
  endpoints: readonly Endpoint[];
  model: JobModel;
  name: string;
  onPurge(endpointId: string): void;
  onViolation(violation: InvariantViolation): void;
  trace(line: string): void;
}

const REQUEST_TIMEOUT_MS = 60_000;
/** A reader may see what was true when the database was read, this long ago. */
const STALE_MS = 5_000;

/**
 * Submits jobs, waits for them, asks after them, cancels and retries them, and remembers what it was told.
 */
export class SimulatedClient {
  readonly #deps: SimulatedClientDeps;
  readonly #process: SimulatedProcess = { frozenUntil: 0, hasCrashed: false };
  readonly #jobs: { seq: number; endpointId: string }[] = [];
  #keys = 0;

  constructor(deps: SimulatedClientDeps) {
    this.#deps = deps;
  }

  /** Until this time; then what is open is waited for. */
  start(until: number): void {
    const { time } = this.#deps;
    time.runIn(this.#process, () => void this.#main(until));
  }

  async #main(until: number): Promise<void> {
    const { time, random } = this.#deps;
    while (time.now < until) {
      await time.sleep(random.next() ** 2 * 2_000, this.#process);
      // Several at a time: a call may wait for long.
      void this.#act().catch((error: unknown) => {
        if (error instanceof InvariantViolation) this.#deps.onViolation(error);
      });
    }
  }

  #act(): Promise<void> {
    const { random } = this.#deps;
    const known = random.pick(this.#jobs);
    const choice = random.next();
    if (known === undefined || choice < 0.35) return this.#run();
    if (choice < 0.6) return this.#runsync();
    if (choice < 0.8) return this.#status(known);
    if (choice < 0.88) return this.#cancel(known);
    if (choice < 0.985) return this.#retry(known);
    return this.#purge();
  }

  #options(): JobOptions {
    const { random } = this.#deps;
    return {
      ...(random.chance(0.3) && { webhook: WEBHOOK_URL }),
      ...(random.chance(0.15) && { ttl: random.between(10_000, 60_000) }),
      // One of low priority starts no worker, so it may wait until its time to live is over.
      ...(random.chance(0.1) && { lowPriority: true, ttl: random.between(5_000, 30_000) }),
      ...(random.chance(0.2) && { retention: random.between(1_000, 20_000) }),
      ...(random.chance(0.15) && { executionTimeout: random.between(5_000, 30_000) }),
    };
  }

  #endpoint(): Endpoint {
    return this.#deps.random.pick(this.#deps.endpoints) as Endpoint;
  }

  /** With an idempotency key it is sent again until somebody has taken it. */
  async #run(): Promise<void> {
    const { random } = this.#deps;
    const endpoint = this.#endpoint();
    const options = this.#options();
    const key = random.chance(0.4) ? `${this.#deps.name}-${(this.#keys += 1)}` : undefined;
    const submitted = {
      endpoint,
      accountId: endpoint.accountId,
      request: '{"input":1}',
      options,
      ...(key !== undefined && { idempotency: { key, bodyHash: key } }),
    };
    for (let attempt = 0; ; attempt += 1) {
      try {
        const job = await this.#request((queue) => queue.submit(submitted), key !== undefined);
        return this.#acknowledged(job);
      } catch (error) {
        if (key === undefined || attempt === 3) throw error;
      }
    }
  }

  async #runsync(): Promise<void> {
    const { random, time, model, trace } = this.#deps;
    const endpoint = this.#endpoint();
    const wait = random.between(1_000, 30_000);
    const options = { ...this.#options(), sync: { wait, waitGiven: true } };
    const request = { endpoint, accountId: endpoint.accountId, request: '{"input":1}', options };
    const { job } = await this.#request(async (queue, signal, process) => {
      const begun = time.now;
      const answer = await queue.submitAndWait(request, wait, signal);
      const known = model.jobs.get(answer.job.seq);
      trace(`runsync of ${answer.job.id} is answered ${answer.outcome?.job.status ?? 'gone'}`);
      const wasFrozen = (process?.frozenUntil ?? 0) > begun;
      if (!signal.aborted && !wasFrozen)
        this.#check(answer.job, answer.outcome, time.now - begun >= wait - 1 || queue.isClosing);
      if (known !== undefined) known.isAcknowledged ||= answer.outcome !== undefined;
      return answer;
    });
    this.#jobs.push({ seq: job.seq, endpointId: job.endpointId });
  }

  /** What a waiter got is what the store says. */
  #check(job: Job, outcome: JobOutcome | undefined, isOver: boolean): void {
    const { model, time } = this.#deps;
    model.refresh();
    const known = model.jobs.get(job.seq);
    const fail = (message: string): never => {
      throw new InvariantViolation(job.id, message);
    };
    if (known === undefined) return fail('a waiter got an outcome of a job that was never stored');
    const answered = outcome?.job.status;
    if (answered === undefined) {
      if (!known.isGone) fail(`a waiter got "gone" for a job that is ${known.status}`);
    } else if (answered === 'IN_QUEUE' || answered === 'IN_PROGRESS') {
      if (!isOver) fail(`a waiter got ${answered} before its time was over`);
      if (known.ends.length > 0 && !known.wasRetried && time.now - known.endedAt > STALE_MS)
        fail(`a waiter got ${answered} of a job that had ended as ${known.ends.join(', ')}`);
    } else if (!known.ends.includes(answered) && !(answered === 'TIMED_OUT' && endedTooLate(known))) {
      fail(
        `a waiter got ${answered} of a job that ` +
          `${known.ends.length === 0 ? 'runs' : `ended as ${known.ends.join(', ')}`}`,
      );
    } else if (
      answered === 'COMPLETED' &&
      known.status === answered &&
      outcome?.payloads.output !== known.output &&
      !known.isGone
    )
      fail(`a waiter got ${outcome?.payloads.output} instead of ${known.output}`);
  }

  async #status({ seq, endpointId }: { seq: number; endpointId: string }): Promise<void> {
    const { model, time } = this.#deps;
    const asked = time.now;
    const found = await this.#request((queue) => queue.find(endpointId, seq));
    const known = model.jobs.get(seq);
    if (known === undefined || known.wasRetried || known.ends.length === 0 || known.endedAt > asked) return;
    if (found !== undefined && !known.ends.includes(found.job.status))
      throw new InvariantViolation(
        known.id,
        `a reader got ${found.job.status} of a job that had ended as ${known.ends.join(', ')}`,
      );
  }

  async #cancel({ seq, endpointId }: { seq: number; endpointId: string }): Promise<void> {
    const known = this.#deps.model.jobs.get(seq);
    if (known !== undefined) known.wasCancelled = true;
    await this.#request((queue) => queue.cancel(endpointId, seq));
  }

  async #retry({ seq, endpointId }: { seq: number; endpointId: string }): Promise<void> {
    const known = this.#deps.model.jobs.get(seq);
    if (known !== undefined) known.wasRetried = true;
    await this.#request((queue) => queue.retry(endpointId, seq));
  }

  async #purge(): Promise<void> {
    const { id } = this.#endpoint();
    this.#deps.onPurge(id);
    await this.#request((queue) => queue.purge(id));
  }

  #acknowledged(job: Job): void {
    const { model } = this.#deps;
    model.refresh();
    const known = model.jobs.get(job.seq);
    if (known === undefined)
      return this.#deps.onViolation(
        new InvariantViolation(job.id, 'a job was acknowledged that is not stored'),
      );
    known.isAcknowledged = true;
    this.#jobs.push({ seq: job.seq, endpointId: job.endpointId });
  }

  #request<T>(
    handle: (queue: JobQueue, signal: CancelSignal, process: SimulatedProcess | undefined) => Promise<T>,
    mayRepeat = false,
  ): Promise<T> {
    const { network, servers, random } = this.#deps;
    const up = servers.filter(({ process }) => process !== undefined);
    const server = random.pick(up.length > 0 ? up : servers) as WorkerServer;
    const { queue, process } = server;
    return network.request(this.#process, server, { timeout: REQUEST_TIMEOUT_MS, mayRepeat }, (signal) =>
      handle(queue as JobQueue, signal, process),
    );
  }
}

/** It ended between the end of its time to live and the sweep that deleted it: nobody is shown its end. */
function endedTooLate({ isGone, endedAt, queuedAt, ttl }: ModelJob): boolean {
  return isGone && endedAt - queuedAt > ttl * (1 - EARLY_SHARE) - EARLY_MS;
}
