import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { LightCancelSignal } from '../../support/cancel-signal.ts';
import { toSingleLine } from '../../support/json-text.ts';
import { WORKER_TIMEOUT_MS } from '../../queue/connected-worker.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import { parseJobLeaseAndBody, parseJobAndLease, parseCounts } from './channel-fields.ts';
import { takenJobJson, LONG_POLL_MS, MAX_RESULT_BYTES } from './workers.routes.ts';
import { JobReports } from './job-reports.ts';
import type { ChannelActivity } from './channel-activity.ts';
import { LineReader } from './line-reader.ts';
import type { TakenJob } from '../../domain/job-records.ts';

export const CHANNEL_PROTOCOL = 'berth-worker/1';
/** A worker whose connection broke has this long to reconnect before its jobs are requeued. */
const RECONNECT_GRACE_MS = 10_000;
/** Beyond this a slow worker gets no more jobs until it has read these. */
export const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
const SMALL_BATCH = 32;
/**
 * With more credits than this, half are used at a time: while those jobs are sent and run, the next ones are
 * taken.
 */
const LARGE_CREDIT = 200;
/**
 * An acknowledgement is sent with the next line, or after this time. Only a worker that ends waits for it.
 */
const ACK_DELAY_MS = 2;
const SILENCE_CHECK_MS = 2_000;
const MAX_CREDITS = 10_000;
export interface WorkerChannelDeps {
  socket: Duplex;
  queue: JobQueue;
  endpointId: string;
  workerId: string;
  /** Shared by all channels. */
  activity: ChannelActivity;
  log: FastifyBaseLogger;
}

/**
 * The connection of one worker: takes, results, chunks, cancellations and pings as lines of text,
 * many in a packet. docs/worker-channel.md describes the protocol.
 */
export class WorkerChannel {
  readonly #deps: WorkerChannelDeps;
  readonly #lines = new LineReader(MAX_RESULT_BYTES + 1024);
  readonly #closedSignal = new LightCancelSignal();
  readonly #reports: JobReports;
  #credits = 0;
  #taking = false;
  #outgoing: string[] = [];
  /** A flush is scheduled for this turn. */
  #flushScheduled = false;
  #acknowledgeTimer: NodeJS.Timeout | undefined;
  readonly #silenceTimer: NodeJS.Timeout;
  /** When something was last received on this connection, by a monotonic clock. */
  #heardAt: number;
  /** At the last check, another connection of the worker was active long after this one. */
  #superseded = false;
  #isNew = true;

  constructor(deps: WorkerChannelDeps) {
    this.#deps = deps;
    const { socket, queue, endpointId, workerId } = deps;
    this.#reports = new JobReports({
      queue,
      endpointId,
      workerId,
      send: (line) => this.#send(line),
      acknowledge: (line) => this.#acknowledge(line),
      onWriteError: (error) => this.#breakOff(error),
    });
    queue.heartbeats.resume(endpointId, workerId);
    queue.heartbeats.recordChannel(endpointId, workerId);
    this.#heardAt = deps.activity.record(endpointId, workerId);
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    // The server's side stays open when the worker closes; a worker that has closed is gone.
    socket.on('end', () => socket.destroy());
    socket.on('close', () => this.#closed());
    socket.on('error', () => socket.destroy());
    this.#watchCancellations();
    this.#silenceTimer = setInterval(() => this.#checkSilence(), SILENCE_CHECK_MS).unref();
  }

  /** Sends the worker to another server: this one stops. */
  sendGoAway(): void {
    this.#send('G');
    this.#flush();
    this.#closedSignal.abort();
    this.#deps.socket.end();
  }

  /** The worker has lost its access. */
  disconnect(): void {
    const { socket, workerId, log } = this.#deps;
    log.info({ workerId }, 'the key of a worker no longer allows its channel; the connection is closed');
    socket.destroy();
  }

  /**
   * An open connection is no sign of life: that of a frozen worker, or of a machine without power, stays open
   * too. Only received lines count.
   */
  #checkSilence(): void {
    const { socket, queue, endpointId, workerId, activity } = this.#deps;
    if (queue.heartbeats.isAlive(endpointId, workerId) !== true) return void socket.destroy();
    // The worker's former server may record the end there after the start here. A heartbeat now is later than
    // both.
    if (this.#isNew) queue.heartbeats.recordHeartbeat(endpointId, workerId);
    this.#isNew = false;
    // A worker that is active on another connection may have left this one without a close that arrived. If
    // both are silent, a handler may keep its thread busy.
    const wasSuperseded = this.#superseded;
    this.#superseded = (activity.lastHeardAt(endpointId, workerId) ?? 0) - this.#heardAt >= WORKER_TIMEOUT_MS;
    // Checked twice: the lines of the other connection may have been read before those of this one.
    if (wasSuperseded && this.#superseded) socket.destroy();
  }

  #read(bytes: Buffer): void {
    const { queue, endpointId, workerId, activity } = this.#deps;
    queue.heartbeats.recordHeartbeat(endpointId, workerId);
    this.#heardAt = activity.record(endpointId, workerId);
    try {
      for (const line of this.#lines.read(bytes)) this.#handleLine(line);
    } catch (error) {
      this.#deps.log.warn(
        { err: error, workerId },
        'a worker sent an invalid line; its connection is closed',
      );
      this.#deps.socket.destroy();
    }
    this.#reports.flushResults();
  }

  #handleLine(line: string): void {
    const { queue, endpointId, workerId } = this.#deps;
    const rest = line.slice(2);
    switch (line.charAt(0)) {
      case 'T':
        return this.#grant(...parseCounts(rest));
      case 'N':
        // Pending takes for these credits end with them.
        this.#credits = 0;
        return queue.endLongPolls(endpointId, workerId);
      case 'D':
        return this.#reports.result(...parseJobLeaseAndBody(rest));
      case 'B':
        return this.#reports.returnJob(...parseJobAndLease(rest));
      case 'S':
        return this.#reports.chunk(...parseJobLeaseAndBody(rest));
      case 'P':
        return this.#reports.progress(...parseJobLeaseAndBody(rest));
      case 'L': {
        const jobs = rest.split(',').filter((id) => id !== '');
        queue.heartbeats.recordTake(endpointId, workerId, jobs.length === 0);
        queue.heartbeats.recordRunningJobs(endpointId, workerId, jobs);
        queue.cancellations.recordRunningJobs(endpointId, workerId, jobs);
        return this.#send('H');
      }
      case 'U': {
        const { check, reason } = JSON.parse(rest) as { check?: unknown; reason?: unknown };
        return queue.heartbeats.unhealthy(
          endpointId,
          workerId,
          `${String(check)}: ${String(reason)}`.slice(0, 512),
        );
      }
      case 'Q':
        this.#credits = 0;
        return queue.pauseWorker(endpointId, workerId);
      default:
        throw new Error(`unknown line ${JSON.stringify(line.slice(0, 16))}`);
    }
  }

  /** `concurrency`: how many jobs the worker runs at a time; 0 if it does not say. */
  #grant(credits: number, concurrency: number): void {
    const { queue, endpointId, workerId } = this.#deps;
    this.#credits = Math.min(MAX_CREDITS, this.#credits + credits);
    if (concurrency > 0) queue.heartbeats.recordConcurrency(endpointId, workerId, concurrency);
    this.#take();
  }

  /**
   * Nothing more is taken for it. A queue that stops answers at once: taking again and again would block the
   * event loop.
   */
  get #stopped(): boolean {
    return this.#closedSignal.aborted || this.#deps.queue.isClosing;
  }

  #take(): void {
    if (this.#taking || this.#credits === 0 || this.#stopped) return;
    this.#taking = true;
    void this.#jobs().then((taken) => {
      this.#credits = Math.max(0, this.#credits - taken.length);
      const few = taken.length <= SMALL_BATCH;
      if (few) this.#deliver(taken);
      this.#taking = false;
      this.#take();
      // The next take starts before many jobs are written.
      if (!few) setImmediate(() => this.#deliver(taken));
    });
  }

  async #jobs(): Promise<TakenJob[]> {
    const { queue, endpointId, workerId, socket } = this.#deps;
    if (socket.writableLength > MAX_UNREAD_BYTES) await drained(socket);
    return queue.take(
      endpointId,
      workerId,
      this.#credits > LARGE_CREDIT ? Math.ceil(this.#credits / 2) : this.#credits,
      LONG_POLL_MS,
      this.#closedSignal,
    );
  }

  #deliver(taken: readonly TakenJob[]): void {
    const { queue, endpointId, socket, log } = this.#deps;
    if (socket.destroyed || this.#closedSignal.aborted) {
      void queue
        .returnTaken(endpointId, taken)
        .catch((error: unknown) =>
          log.error({ err: error }, 'a job that did not reach its worker could not be requeued'),
        );
      return;
    }
    for (const job of taken) this.#send(`J ${job.job.lease ?? ''} ${toSingleLine(takenJobJson(job))}`);
  }

  /** The worker sends it again on its next connection. */
  #breakOff(error: unknown): void {
    const { socket, workerId, log } = this.#deps;
    log.warn(
      { err: error, workerId },
      'a report of a worker could not be stored; its connection is closed so that it sends it again',
    );
    socket.destroy();
  }

  #watchCancellations(): void {
    const { queue, endpointId, workerId } = this.#deps;
    void (async () => {
      while (!this.#stopped) {
        const jobs = await queue.waitForCancellations(endpointId, workerId, LONG_POLL_MS, this.#closedSignal);
        for (const jobId of jobs) this.#send(`X ${jobId}`);
      }
    })();
  }

  #send(line: string): void {
    this.#outgoing.push(line);
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    process.nextTick(() => this.#flush());
  }

  /** Is sent with the next line. */
  #acknowledge(line: string): void {
    this.#outgoing.push(line);
    this.#acknowledgeTimer ??= setTimeout(() => {
      this.#acknowledgeTimer = undefined;
      this.#flush();
    }, ACK_DELAY_MS);
  }

  #flush(): void {
    this.#flushScheduled = false;
    const lines = this.#outgoing;
    this.#outgoing = [];
    if (lines.length > 0 && !this.#deps.socket.destroyed) this.#deps.socket.write(`${lines.join('\n')}\n`);
  }

  #closed(): void {
    const { queue, endpointId, workerId, activity, log } = this.#deps;
    clearTimeout(this.#acknowledgeTimer);
    clearInterval(this.#silenceTimer);
    activity.forget(endpointId, workerId);
    this.#closedSignal.abort();
    const since = queue.heartbeats.now();
    setTimeout(() => {
      queue.reaper
        .workerLeft(endpointId, workerId, since, 'the worker that ran the job went away')
        .catch((error: unknown) =>
          log.warn({ err: error }, 'the jobs of a worker that disconnected could not be requeued'),
        );
    }, RECONNECT_GRACE_MS).unref();
  }
}

/** Resolves when the write buffer is empty, or the connection is closed. */
function drained(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done).off('close', done);
      resolve();
    };
    socket.on('drain', done).on('close', done);
  });
}
