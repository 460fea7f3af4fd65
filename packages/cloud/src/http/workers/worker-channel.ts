import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { LightCancelSignal } from '../../support/cancel-signal.ts';
import { toSingleLine } from '../../support/json-text.ts';
import { WORKER_TIMEOUT_MS } from '../../queue/worker-heartbeats.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import { parseJobLeaseAndBody, parseJobAndLease, parseCounts } from './channel-fields.ts';
import { takenJobJson, LONG_POLL_MS, MAX_RESULT_BYTES } from './workers.routes.ts';
import { JobReports } from './job-reports.ts';
import type { ChannelActivity } from './channel-activity.ts';
import { LineReader } from './line-reader.ts';
import type { TakenJob } from '../../domain/job-records.ts';

export const CHANNEL_PROTOCOL = 'berth-worker/1';
/** A worker whose connection broke has this long to come back before its jobs go to others. */
const RECONNECT_GRACE_MS = 10_000;
/** Beyond this a slow worker gets no more jobs until it has read what it has. */
export const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
const SMALL_BATCH = 32;
/** Of more room than this, half is filled at a time: while those jobs travel and run, the next ones leave the queue. */
const LARGE_CREDIT = 200;
/** An acknowledgement that nothing else takes along leaves this much later. Nobody waits for it but a worker that ends. */
const ACK_DELAY_MS = 2;
const SILENCE_CHECK_MS = 2_000;
const MAX_CREDITS = 10_000;
export interface WorkerChannelDeps {
  socket: Duplex;
  queue: JobQueue;
  endpointId: string;
  workerId: string;
  /** Shared by all channels. */
  words: ChannelActivity;
  log: FastifyBaseLogger;
}

/**
 * One worker's connection: takes, results, chunks, stops and pings as lines of text, many to
 * a packet. docs/worker-channel.md is its description.
 */
export class WorkerChannel {
  readonly #deps: WorkerChannelDeps;
  readonly #lines = new LineReader(MAX_RESULT_BYTES + 1024);
  readonly #gone = new LightCancelSignal();
  readonly #reports: JobReports;
  #credits = 0;
  #taking = false;
  #outgoing: string[] = [];
  /** What is to be sent leaves with this turn. */
  #leaving = false;
  #acknowledgeTimer: NodeJS.Timeout | undefined;
  readonly #silenceTimer: NodeJS.Timeout;
  /** When something last came over this connection, by time that cannot be set. */
  #heardAt: number;
  /** At the last look, another connection of the worker had gone on for too long without this one. */
  #outlived = false;
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
    this.#heardAt = deps.words.record(endpointId, workerId);
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    // The server's side stays open when the other one closes; a worker that has closed is gone.
    socket.on('end', () => socket.destroy());
    socket.on('close', () => this.#closed());
    socket.on('error', () => socket.destroy());
    this.#lookForStops();
    this.#silenceTimer = setInterval(() => this.#look(), SILENCE_CHECK_MS).unref();
  }

  /** Tells the worker to go elsewhere: this server stops. */
  sendGoAway(): void {
    this.#send('G');
    this.#flush();
    this.#gone.abort();
    this.#deps.socket.end();
  }

  /** Its worker may not be here any more. */
  disconnect(): void {
    const { socket, workerId, log } = this.#deps;
    log.info(
      { workerId },
      'the key of a worker does not open its channel any more; the connection is closed',
    );
    socket.destroy();
  }

  /** An open connection proves nothing: that of a frozen worker, or of a machine without power, stays open too. What counts is what it says. */
  #look(): void {
    const { socket, queue, endpointId, workerId, words } = this.#deps;
    if (queue.heartbeats.isAlive(endpointId, workerId) !== true) return void socket.destroy();
    // The server that it came from may have heard of the end there later than of the beginning here. What it is told now is later than both.
    if (this.#isNew) queue.heartbeats.recordHeartbeat(endpointId, workerId);
    this.#isNew = false;
    // A worker that went on over another connection may have left this one, and no word of that came through. Silence of both says nothing: a handler may keep their thread busy.
    const wasOutlived = this.#outlived;
    this.#outlived = (words.lastHeardAt(endpointId, workerId) ?? 0) - this.#heardAt >= WORKER_TIMEOUT_MS;
    // Twice: what the other one said may have been read first, and what this one said is still to be.
    if (wasOutlived && this.#outlived) socket.destroy();
  }

  #read(bytes: Buffer): void {
    const { queue, endpointId, workerId, words } = this.#deps;
    queue.heartbeats.recordHeartbeat(endpointId, workerId);
    this.#heardAt = words.record(endpointId, workerId);
    try {
      for (const line of this.#lines.read(bytes)) this.#understand(line);
    } catch (error) {
      this.#deps.log.warn(
        { err: error, workerId },
        'a worker sent something that is not of the protocol; its connection is closed',
      );
      this.#deps.socket.destroy();
    }
    this.#reports.flushResults();
  }

  #understand(line: string): void {
    const { queue, endpointId, workerId } = this.#deps;
    const rest = line.slice(2);
    switch (line.charAt(0)) {
      case 'T':
        return this.#grant(...parseCounts(rest));
      case 'N':
        // Whatever waits for jobs on behalf of those credits ends with them.
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

  /** `places`: how many jobs the worker runs at a time; 0 where it does not say. */
  #grant(credits: number, places: number): void {
    const { queue, endpointId, workerId } = this.#deps;
    this.#credits = Math.min(MAX_CREDITS, this.#credits + credits);
    if (places > 0) queue.heartbeats.recordConcurrency(endpointId, workerId, places);
    this.#take();
  }

  /** Nothing more is asked for on its behalf. A queue that stops answers at once: asking it again and again would leave no time for anything else. */
  get #over(): boolean {
    return this.#gone.aborted || this.#deps.queue.isClosing;
  }

  #take(): void {
    if (this.#taking || this.#credits === 0 || this.#over) return;
    this.#taking = true;
    void this.#jobs().then((taken) => {
      this.#credits = Math.max(0, this.#credits - taken.length);
      const few = taken.length <= SMALL_BATCH;
      if (few) this.#deliver(taken);
      this.#taking = false;
      this.#take();
      // The next take is on its way before many are written.
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
      this.#gone,
    );
  }

  #deliver(taken: readonly TakenJob[]): void {
    const { queue, endpointId, socket, log } = this.#deps;
    if (socket.destroyed || this.#gone.aborted) {
      void queue
        .giveBack(endpointId, taken)
        .catch((error: unknown) =>
          log.error({ err: error }, 'a job that did not reach its worker could not be put back'),
        );
      return;
    }
    for (const job of taken) this.#send(`J ${job.job.lease ?? ''} ${toSingleLine(takenJobJson(job))}`);
  }

  /** On its next connection the worker says it again. */
  #breakOff(error: unknown): void {
    const { socket, workerId, log } = this.#deps;
    log.warn(
      { err: error, workerId },
      'what a worker said could not be kept; its connection is closed so that it says it again',
    );
    socket.destroy();
  }

  #lookForStops(): void {
    const { queue, endpointId, workerId } = this.#deps;
    void (async () => {
      while (!this.#over) {
        const jobs = await queue.waitForCancellations(endpointId, workerId, LONG_POLL_MS, this.#gone);
        for (const jobId of jobs) this.#send(`X ${jobId}`);
      }
    })();
  }

  #send(line: string): void {
    this.#outgoing.push(line);
    if (this.#leaving) return;
    this.#leaving = true;
    process.nextTick(() => this.#flush());
  }

  /** Goes along with what is sent next. */
  #acknowledge(line: string): void {
    this.#outgoing.push(line);
    this.#acknowledgeTimer ??= setTimeout(() => {
      this.#acknowledgeTimer = undefined;
      this.#flush();
    }, ACK_DELAY_MS);
  }

  #flush(): void {
    this.#leaving = false;
    const lines = this.#outgoing;
    this.#outgoing = [];
    if (lines.length > 0 && !this.#deps.socket.destroyed) this.#deps.socket.write(`${lines.join('\n')}\n`);
  }

  #closed(): void {
    const { queue, endpointId, workerId, words, log } = this.#deps;
    clearTimeout(this.#acknowledgeTimer);
    clearInterval(this.#silenceTimer);
    words.forget(endpointId, workerId);
    this.#gone.abort();
    const since = queue.heartbeats.now();
    setTimeout(() => {
      queue.reaper
        .workerLeft(endpointId, workerId, since, 'the worker that ran the job went away')
        .catch((error: unknown) =>
          log.warn({ err: error }, 'the jobs of a worker that went away could not be put back'),
        );
    }, RECONNECT_GRACE_MS).unref();
  }
}

/** Resolves when what was written has been read, or nobody will read it. */
function drained(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const goOn = (): void => {
      socket.off('drain', goOn).off('close', goOn);
      resolve();
    };
    socket.on('drain', goOn).on('close', goOn);
  });
}
