import { seqFromJobId } from '../../domain/job-ids.ts';
import type { NumberedChunk } from '../../queue/numbered-chunks.ts';
import type { FinishedAttempt, JobQueue } from '../../queue/job-queue.ts';
import { ChurnMap } from '../../support/churn-map.ts';
import { parseLeaseAndWait } from './channel-fields.ts';
import { parseLeaseAndChunkNumber } from './chunk-number.ts';
import { parseJobStream, parseJobDone, parseJsonValue } from './worker-posts.ts';

/** So many characters of chunks are written together, with something for each; what comes next waits for another turn. */
const MAX_CHUNK_BATCH_CHARS = 1024 * 1024;
const CHUNK_OVERHEAD = 100;

export interface JobReportsDeps {
  queue: JobQueue;
  endpointId: string;
  workerId: string;
  send(line: string): void;
  /** Sends it along with what is sent next. */
  acknowledge(line: string): void;
  /** What could not be kept is not acknowledged: the worker has to say it again. */
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

/** A value that a job shows while it runs. */
interface ProgressUpdate {
  lease: string;
  body: string;
}

/**
 * What a worker says of its jobs over its channel: results, chunks, values to show, and jobs that it
 * has not begun. Of each job, one thing after the other is kept, in the order in which they were said.
 */
export class JobReports {
  readonly #deps: JobReportsDeps;
  /** What was said last about a job and is not kept yet: what is said next waits for it. Of results that came together, and before which nothing was, see below. */
  readonly #pending = new ChurnMap<string, Promise<void>>();
  /** Results that came with the bytes at hand, by job: they are kept together. */
  #endings = new Map<string, WorkerResult>();
  /** Those that are just being kept. */
  readonly #ending = new Map<ReadonlyMap<string, WorkerResult>, Promise<void>>();
  /** The last thing that was said about a job, where it is chunks and nobody has begun to write them. */
  readonly #gathering = new Map<string, ChunkBatch>();
  /** The same, where it is a value to show. */
  readonly #showing = new Map<string, ProgressUpdate>();

  constructor(deps: JobReportsDeps) {
    this.#deps = deps;
  }

  result(jobId: string, held: string, body: string): void {
    const post = parseJobDone(body);
    const [lease, waited] = parseLeaseAndWait(held);
    const seq = seqFromJobId(jobId);
    if (seq === undefined || post.kind !== 'result') return this.#deps.send(`A ${jobId} ${lease}`);
    const ending: WorkerResult = {
      jobId,
      seq,
      lease,
      result: waited === 0 ? post : { ...post, waited },
      refresh: post.refresh,
    };
    if (this.#endings.has(jobId)) this.flushResults();
    const before = this.#last(jobId);
    if (before === undefined) this.#endings.set(jobId, ending);
    else
      this.#follow(
        jobId,
        before.then(() => this.#end([ending])),
      );
  }

  /** Keeps the results that have come. */
  flushResults(): void {
    if (this.#endings.size === 0) return;
    const endings = this.#endings;
    this.#endings = new Map();
    if (this.#gathering.size > 0) for (const jobId of endings.keys()) this.#gathering.delete(jobId);
    const done = this.#end([...endings.values()]).finally(() => this.#ending.delete(endings));
    this.#ending.set(endings, done);
    this.#watch(done);
  }

  async #end(endings: readonly WorkerResult[]): Promise<void> {
    const { queue, endpointId, workerId } = this.#deps;
    await queue.finishAll(endpointId, workerId, endings);
    for (const { jobId, lease, refresh } of endings) {
      queue.cancellations.remove(endpointId, workerId, jobId);
      if (refresh) queue.pauseWorker(endpointId, workerId);
      this.#deps.acknowledge(`A ${jobId} ${lease}`);
    }
  }

  /** The worker has not begun it. */
  returnJob(jobId: string, lease: string): void {
    const { queue, endpointId, workerId } = this.#deps;
    const seq = seqFromJobId(jobId);
    this.#follow(
      jobId,
      this.#before(jobId).then(async () => {
        if (seq !== undefined) await queue.returnToQueue(endpointId, seq, { workerId, lease });
        queue.cancellations.remove(endpointId, workerId, jobId);
        this.#deps.send(`A ${jobId} ${lease}`);
      }),
    );
  }

  /** With a number it is acknowledged. Those of one job that come while others of it are written are written together. */
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
    const said: NumberedChunk = { number, texts: parseJobStream(body) };
    const open = this.#gathering.get(jobId);
    if (open !== undefined && open.lease === lease && open.size < MAX_CHUNK_BATCH_CHARS) {
      open.size += body.length + CHUNK_OVERHEAD;
      open.highest = Math.max(open.highest, number);
      return void open.chunks.push(said);
    }
    const gathered: ChunkBatch = {
      lease,
      chunks: [said],
      highest: number,
      size: body.length + CHUNK_OVERHEAD,
    };
    this.#follow(
      jobId,
      this.#before(jobId).then(async () => {
        if (this.#gathering.get(jobId) === gathered) this.#gathering.delete(jobId);
        if (seq !== undefined)
          await queue.streams.appendNumbered(endpointId, seq, { workerId, lease }, gathered.chunks);
        this.#deps.send(`K ${jobId} ${lease} ${gathered.highest}`);
      }),
    );
    this.#gathering.set(jobId, gathered);
  }

  /** Of values that come while another one is written, the last is shown. */
  progress(jobId: string, lease: string, body: string): void {
    const { queue, endpointId, workerId } = this.#deps;
    const seq = seqFromJobId(jobId);
    if (seq === undefined) return;
    const open = this.#showing.get(jobId);
    if (open?.lease === lease) return void (open.body = body);
    const shown: ProgressUpdate = { lease, body };
    this.#follow(
      jobId,
      this.#before(jobId).then(() => {
        if (this.#showing.get(jobId) === shown) this.#showing.delete(jobId);
        return queue.progress(endpointId, seq, { workerId, lease }, parseJsonValue(shown.body));
      }),
    );
    this.#showing.set(jobId, shown);
  }

  /** Resolves when all is kept that was said about a job before. */
  #before(jobId: string): Promise<void> {
    if (this.#endings.has(jobId)) this.flushResults();
    return this.#last(jobId) ?? Promise.resolve();
  }

  /** Undefined where all is kept that was said about a job. */
  #last(jobId: string): Promise<void> | undefined {
    const pending = this.#pending.get(jobId);
    if (pending !== undefined) return pending;
    for (const [endings, done] of this.#ending) if (endings.has(jobId)) return done;
    return undefined;
  }

  /** Whatever else is said about this job comes after it. */
  #follow(jobId: string, work: Promise<void>): void {
    this.#gathering.delete(jobId);
    this.#showing.delete(jobId);
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
