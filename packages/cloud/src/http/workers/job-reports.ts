import { seqFromJobId } from '../../domain/job-ids.ts';
import type { NumberedChunk } from '../../queue/numbered-chunks.ts';
import type { FinishedAttempt, JobQueue } from '../../queue/job-queue.ts';
import { ChurnMap } from '../../support/churn-map.ts';
import { parseLeaseAndWait } from './channel-fields.ts';
import { parseLeaseAndChunkNumber } from './chunk-number.ts';
import { LARGE_BODY_CHARS, parseLargeJobDone } from '../large-body-parser.ts';
import { parseJobStream, parseJobDone, parseJsonValue } from './worker-posts.ts';
import type { WorkerPost } from './worker-posts.ts';

/**
 * How many characters of chunks are written together, with an overhead for each; more wait for the next
 * write.
 */
const MAX_CHUNK_BATCH_CHARS = 1024 * 1024;
const CHUNK_OVERHEAD = 100;

export interface JobReportsDeps {
  queue: JobQueue;
  endpointId: string;
  workerId: string;
  send(line: string): void;
  /** Sends it with the next line. */
  acknowledge(line: string): void;
  /** A report that could not be stored is not acknowledged: the worker has to send it again. */
  onWriteError(error: unknown): void;
}

interface WorkerResult extends FinishedAttempt {
  jobId: string;
  /** The worker asks to be replaced. */
  refresh: boolean;
}

/** Chunks of one job that are written together. */
interface ChunkBatch {
  lease: string;
  chunks: NumberedChunk[];
  highest: number;
  size: number;
}

/** A progress value of a running job. */
interface ProgressUpdate {
  lease: string;
  body: string;
}

/**
 * What a worker reports about its jobs on its channel: results, chunks, progress, and jobs that it
 * returns unstarted. The reports on one job are stored one after the other, in their order.
 */
export class JobReports {
  readonly #deps: JobReportsDeps;
  /**
   * The last report on a job that is not stored yet: the next one waits for it. Results without an earlier
   * report are below.
   */
  readonly #pending = new ChurnMap<string, Promise<void>>();
  /** Results that arrived in the same packet, by job: they are stored together. */
  #results = new Map<string, WorkerResult>();
  /** Results that are being stored. */
  readonly #storing = new Map<ReadonlyMap<string, WorkerResult>, Promise<void>>();
  /** The last report on a job, if it is chunks whose write has not begun. */
  readonly #openBatches = new Map<string, ChunkBatch>();
  /** The same for progress. */
  readonly #openProgress = new Map<string, ProgressUpdate>();

  constructor(deps: JobReportsDeps) {
    this.#deps = deps;
  }

  result(jobId: string, held: string, body: string): void {
    if (body.length >= LARGE_BODY_CHARS) return this.#largeResult(jobId, held, body);
    const finished = this.#finished(jobId, held, parseJobDone(body));
    if (finished === undefined) return;
    if (this.#results.has(jobId)) this.flushResults();
    const before = this.#last(jobId);
    if (before === undefined) this.#results.set(jobId, finished);
    else
      this.#follow(
        jobId,
        before.then(() => this.#storeResults([finished])),
      );
  }

  /** Parsed on another thread; what the worker reports on the job after it waits. */
  #largeResult(jobId: string, held: string, body: string): void {
    if (this.#results.has(jobId)) this.flushResults();
    this.#follow(
      jobId,
      this.#before(jobId).then(async () => {
        const finished = this.#finished(jobId, held, await parseLargeJobDone(this.#deps.endpointId, body));
        if (finished !== undefined) await this.#storeResults([finished]);
      }),
    );
  }

  /** Undefined, and acknowledged, where there is nothing to store. */
  #finished(jobId: string, held: string, post: WorkerPost): WorkerResult | undefined {
    const [lease, waited] = parseLeaseAndWait(held);
    const seq = seqFromJobId(jobId);
    if (seq === undefined || post.kind !== 'result') {
      this.#deps.send(`A ${jobId} ${lease}`);
      return undefined;
    }
    const { queue, endpointId, workerId } = this.#deps;
    queue.heartbeats.recordAttemptEnd(endpointId, workerId, seq, lease);
    return {
      jobId,
      seq,
      lease,
      result: waited === 0 ? post : { ...post, waited },
      refresh: post.refresh,
    };
  }

  /** Stores the results that have arrived. */
  flushResults(): void {
    if (this.#results.size === 0) return;
    const results = this.#results;
    this.#results = new Map();
    if (this.#openBatches.size > 0) for (const jobId of results.keys()) this.#openBatches.delete(jobId);
    const done = this.#storeResults([...results.values()]).finally(() => this.#storing.delete(results));
    this.#storing.set(results, done);
    this.#watch(done);
  }

  async #storeResults(results: readonly WorkerResult[]): Promise<void> {
    const { queue, endpointId, workerId } = this.#deps;
    await queue.finishAll(endpointId, workerId, results);
    for (const { jobId, lease, refresh } of results) {
      queue.cancellations.remove(endpointId, workerId, jobId);
      if (refresh) queue.pauseWorkerAfterResult(endpointId, workerId);
      this.#deps.acknowledge(`A ${jobId} ${lease}`);
    }
  }

  /** The worker has not started it. */
  returnJob(jobId: string, lease: string): void {
    const { queue, endpointId, workerId } = this.#deps;
    const seq = seqFromJobId(jobId);
    if (seq !== undefined) {
      queue.heartbeats.recordAttemptEnd(endpointId, workerId, seq, lease);
      // Its lists leave the job out from now on, also while the store is away.
      queue.heartbeats.unassignAttempt(endpointId, workerId, seq, lease);
    }
    this.#follow(
      jobId,
      this.#before(jobId).then(async () => {
        if (seq !== undefined) await queue.returnToQueue(endpointId, seq, { workerId, lease });
        queue.cancellations.remove(endpointId, workerId, jobId);
        this.#deps.send(`A ${jobId} ${lease}`);
      }),
    );
  }

  /**
   * A numbered chunk is acknowledged. Chunks of a job that arrive while others are written are written
   * together.
   */
  chunk(jobId: string, held: string, body: string): void {
    const { queue, endpointId, workerId } = this.#deps;
    const numbered = parseLeaseAndChunkNumber(held);
    const seq = seqFromJobId(jobId);
    if (numbered === undefined) {
      if (seq !== undefined)
        this.#follow(
          jobId,
          this.#before(jobId).then(() =>
            queue.streams.append(endpointId, seq, { workerId, lease: held }, parseJobStream(body)),
          ),
        );
      return;
    }
    const { lease, number } = numbered;
    const chunk: NumberedChunk = { number, texts: parseJobStream(body) };
    const open = this.#openBatches.get(jobId);
    if (open !== undefined && open.lease === lease && open.size < MAX_CHUNK_BATCH_CHARS) {
      open.size += body.length + CHUNK_OVERHEAD;
      open.highest = Math.max(open.highest, number);
      return void open.chunks.push(chunk);
    }
    const batch: ChunkBatch = {
      lease,
      chunks: [chunk],
      highest: number,
      size: body.length + CHUNK_OVERHEAD,
    };
    this.#follow(
      jobId,
      this.#before(jobId).then(async () => {
        if (this.#openBatches.get(jobId) === batch) this.#openBatches.delete(jobId);
        if (seq !== undefined)
          await queue.streams.appendNumbered(endpointId, seq, { workerId, lease }, batch.chunks);
        this.#deps.send(`K ${jobId} ${lease} ${batch.highest}`);
      }),
    );
    this.#openBatches.set(jobId, batch);
  }

  /** Of several values that arrive during a write, the last is stored. */
  progress(jobId: string, lease: string, body: string): void {
    const { queue, endpointId, workerId } = this.#deps;
    const seq = seqFromJobId(jobId);
    if (seq === undefined) return;
    const open = this.#openProgress.get(jobId);
    if (open?.lease === lease) return void (open.body = body);
    const update: ProgressUpdate = { lease, body };
    this.#follow(
      jobId,
      this.#before(jobId).then(() => {
        if (this.#openProgress.get(jobId) === update) this.#openProgress.delete(jobId);
        return queue.progress(endpointId, seq, { workerId, lease }, parseJsonValue(update.body));
      }),
    );
    this.#openProgress.set(jobId, update);
  }

  /** Resolves when all earlier reports on a job are stored. */
  #before(jobId: string): Promise<void> {
    if (this.#results.has(jobId)) this.flushResults();
    return this.#last(jobId) ?? Promise.resolve();
  }

  /** Undefined if all reports on a job are stored. */
  #last(jobId: string): Promise<void> | undefined {
    const pending = this.#pending.get(jobId);
    if (pending !== undefined) return pending;
    for (const [results, done] of this.#storing) if (results.has(jobId)) return done;
    return undefined;
  }

  /** Later reports on this job wait for it. */
  #follow(jobId: string, work: Promise<void>): void {
    this.#openBatches.delete(jobId);
    this.#openProgress.delete(jobId);
    const done = work.finally(() => {
      if (this.#pending.get(jobId) === done) this.#pending.delete(jobId);
    });
    this.#pending.set(jobId, done);
    this.#watch(done);
  }

  #watch(work: Promise<void>): void {
    work.catch((error: unknown) => this.#deps.onWriteError(error));
  }
}
