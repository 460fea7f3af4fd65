import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { LightDeparture } from '../../jobs/departure.ts';
import { seqOf } from '../../jobs/identity.ts';
import { onOneLine } from '../../jobs/json-text.ts';
import type { NumberedChunk } from '../../jobs/numbered-chunks.ts';
import { SILENT_MS } from '../../jobs/presence.ts';
import type { Ending, JobQueue } from '../../jobs/queue.ts';
import type { TakenJob } from '../../store/jobs.ts';
import { SteadyMap } from '../../support/steady-map.ts';
import { leaseAndNumber } from './chunk-number.ts';
import { jobText, POLL_MS, RESULT_LIMIT } from './face.ts';
import type { LastWords } from './last-words.ts';
import { LineReader } from './lines.ts';
import { readChunks, readPost, readValue } from './results.ts';

export const CHANNEL_PROTOCOL = 'berth-worker/1';
/** A worker whose connection broke has this long to come back before its jobs go to others. */
const RETURN_WITHIN_MS = 10_000;
/** Beyond this a slow worker gets no more jobs until it has read what it has. */
export const UNREAD_LIMIT = 8 * 1024 * 1024;
const A_FEW = 32;
/** Of more room than this, half is filled at a time: while those jobs travel and run, the next ones leave the queue. */
const MUCH_ROOM = 200;
/** An acknowledgement that nothing else takes along leaves this much later. Nobody waits for it but a worker that ends. */
const ACKNOWLEDGE_MS = 2;
const SILENCE_LOOK_MS = 2_000;
const MOST_CREDITS = 10_000;
/** So many characters of chunks are written together, with something for each; what comes next waits for another turn. */
const LARGEST_GATHERING = 1024 * 1024;
const CHUNK_OVERHEAD = 100;

export interface ChannelParts {
  socket: Duplex;
  queue: JobQueue;
  endpointId: string;
  workerId: string;
  /** Shared by all channels. */
  words: LastWords;
  log: FastifyBaseLogger;
}

interface WorkerEnding extends Ending {
  jobId: string;
  /** The worker asks to be replaced. */
  refresh: boolean;
}

/** Chunks of one job that are written together. */
interface Gathering {
  lease: string;
  said: NumberedChunk[];
  highest: number;
  size: number;
}

/** A value that a job shows while it runs. */
interface Showing {
  lease: string;
  body: string;
}

/**
 * One worker's connection: takes, results, chunks, stops and pings as lines of text, many to
 * a packet. docs/worker-channel.md is its description.
 */
export class WorkerChannel {
  readonly #parts: ChannelParts;
  readonly #lines = new LineReader(RESULT_LIMIT + 1024);
  readonly #gone = new LightDeparture();
  /** What was said last about a job and is not kept yet: what is said next waits for it. Of results that came together, and before which nothing was, see below. */
  readonly #pending = new SteadyMap<string, Promise<void>>();
  /** Results that came with the bytes at hand, by job: they are kept together. */
  #endings = new Map<string, WorkerEnding>();
  /** Those that are just being kept. */
  readonly #ending = new Map<ReadonlyMap<string, WorkerEnding>, Promise<void>>();
  /** The last thing that was said about a job, where it is chunks and nobody has begun to write them. */
  readonly #gathering = new Map<string, Gathering>();
  /** The same, where it is a value to show. */
  readonly #showing = new Map<string, Showing>();
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

  constructor(parts: ChannelParts) {
    this.#parts = parts;
    const { socket, queue, endpointId, workerId } = parts;
    queue.presence.returns(endpointId, workerId);
    this.#heardAt = parts.words.heard(endpointId, workerId);
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    // The server's side stays open when the other one closes; a worker that has closed is gone.
    socket.on('end', () => socket.destroy());
    socket.on('close', () => this.#closed());
    socket.on('error', () => socket.destroy());
    this.#lookForStops();
    this.#silenceTimer = setInterval(() => this.#look(), SILENCE_LOOK_MS).unref();
  }

  /** Tells the worker to go elsewhere: this server stops. */
  goAway(): void {
    this.#send('G');
    this.#flush();
    this.#gone.depart();
    this.#parts.socket.end();
  }

  /** Its worker may not be here any more. */
  cut(): void {
    const { socket, workerId, log } = this.#parts;
    log.info({ workerId }, 'the key of a worker does not open its channel any more; the connection is closed');
    socket.destroy();
  }

  /** An open connection proves nothing: that of a frozen worker, or of a machine without power, stays open too. What counts is what it says. */
  #look(): void {
    const { socket, queue, endpointId, workerId, words } = this.#parts;
    if (queue.presence.lives(endpointId, workerId) !== true) return void socket.destroy();
    // A worker that went on over another connection may have left this one, and no word of that came through. Silence of both says nothing: a handler may keep their thread busy.
    const wasOutlived = this.#outlived;
    this.#outlived = (words.last(endpointId, workerId) ?? 0) - this.#heardAt >= SILENT_MS;
    // Twice: what the other one said may have been read first, and what this one said is still to be.
    if (wasOutlived && this.#outlived) socket.destroy();
  }

  #read(bytes: Buffer): void {
    const { queue, endpointId, workerId, words } = this.#parts;
    queue.presence.seen(endpointId, workerId);
    this.#heardAt = words.heard(endpointId, workerId);
    try {
      for (const line of this.#lines.read(bytes)) this.#understand(line);
    } catch (error) {
      this.#parts.log.warn({ err: error, workerId }, 'a worker sent something that is not of the protocol; its connection is closed');
      this.#parts.socket.destroy();
    }
    this.#finish();
  }

  #understand(line: string): void {
    const { queue, endpointId, workerId } = this.#parts;
    const rest = line.slice(2);
    switch (line.charAt(0)) {
      case 'T':
        return this.#grant(...numbers(rest));
      case 'N':
        // Whatever waits for jobs on behalf of those credits ends with them.
        this.#credits = 0;
        return queue.release(endpointId, workerId);
      case 'D':
        return this.#result(...fields(rest));
      case 'B':
        return this.#giveBack(...names(rest));
      case 'S':
        return this.#chunk(...fields(rest));
      case 'P':
        return this.#progress(...fields(rest));
      case 'L': {
        const jobs = rest.split(',').filter((id) => id !== '');
        queue.presence.asksForWork(endpointId, workerId, jobs.length === 0);
        queue.presence.lists(endpointId, workerId, jobs);
        queue.stops.listed(endpointId, workerId, jobs);
        return this.#send('H');
      }
      case 'U': {
        const { check, reason } = JSON.parse(rest) as { check?: unknown; reason?: unknown };
        return queue.presence.unhealthy(endpointId, workerId, `${String(check)}: ${String(reason)}`.slice(0, 512));
      }
      case 'Q':
        this.#credits = 0;
        return queue.rest(endpointId, workerId);
      default:
        throw new Error(`unknown line ${JSON.stringify(line.slice(0, 16))}`);
    }
  }

  /** `places`: how many jobs the worker runs at a time; 0 where it does not say. */
  #grant(credits: number, places: number): void {
    const { queue, endpointId, workerId } = this.#parts;
    this.#credits = Math.min(MOST_CREDITS, this.#credits + credits);
    if (places > 0) queue.presence.hasPlaces(endpointId, workerId, places);
    this.#take();
  }

  /** Nothing more is asked for on its behalf. A queue that stops answers at once: asking it again and again would leave no time for anything else. */
  get #over(): boolean {
    return this.#gone.aborted || this.#parts.queue.stopping;
  }

  #take(): void {
    if (this.#taking || this.#credits === 0 || this.#over) return;
    this.#taking = true;
    void this.#jobs().then((taken) => {
      this.#credits = Math.max(0, this.#credits - taken.length);
      const few = taken.length <= A_FEW;
      if (few) this.#deliver(taken);
      this.#taking = false;
      this.#take();
      // The next take is on its way before many are written.
      if (!few) setImmediate(() => this.#deliver(taken));
    });
  }

  async #jobs(): Promise<TakenJob[]> {
    const { queue, endpointId, workerId, socket } = this.#parts;
    if (socket.writableLength > UNREAD_LIMIT) await drained(socket);
    return queue.take(endpointId, workerId, this.#credits > MUCH_ROOM ? Math.ceil(this.#credits / 2) : this.#credits, POLL_MS, this.#gone);
  }

  #deliver(taken: readonly TakenJob[]): void {
    const { queue, endpointId, socket, log } = this.#parts;
    if (socket.destroyed || this.#gone.aborted) {
      void queue.giveBack(endpointId, taken).catch((error: unknown) => log.error({ err: error }, 'a job that did not reach its worker could not be put back'));
      return;
    }
    for (const job of taken) this.#send(`J ${job.job.lease ?? ''} ${onOneLine(jobText(job))}`);
  }

  #result(jobId: string, held: string, body: string): void {
    const post = readPost(body);
    const [lease, waited] = waitedFor(held);
    const seq = seqOf(jobId);
    if (seq === undefined || post.kind !== 'result') return this.#send(`A ${jobId} ${lease}`);
    const ending: WorkerEnding = { jobId, seq, lease, result: waited === 0 ? post : { ...post, waited }, refresh: post.refresh };
    if (this.#endings.has(jobId)) this.#finish();
    const before = this.#last(jobId);
    if (before === undefined) this.#endings.set(jobId, ending);
    else this.#follow(jobId, before.then(() => this.#end([ending])));
  }

  /** Keeps the results that have come. */
  #finish(): void {
    if (this.#endings.size === 0) return;
    const endings = this.#endings;
    this.#endings = new Map();
    if (this.#gathering.size > 0) for (const jobId of endings.keys()) this.#gathering.delete(jobId);
    const done = this.#end([...endings.values()]).finally(() => this.#ending.delete(endings));
    this.#ending.set(endings, done);
    this.#watch(done);
  }

  async #end(endings: readonly WorkerEnding[]): Promise<void> {
    const { queue, endpointId, workerId } = this.#parts;
    await queue.finishAll(endpointId, workerId, endings);
    for (const { jobId, lease, refresh } of endings) {
      queue.stops.settle(endpointId, workerId, jobId);
      if (refresh) queue.rest(endpointId, workerId);
      this.#acknowledge(`A ${jobId} ${lease}`);
    }
  }

  /** The worker has not begun it. */
  #giveBack(jobId: string, lease: string): void {
    const { queue, endpointId, workerId } = this.#parts;
    const seq = seqOf(jobId);
    this.#follow(jobId, this.#before(jobId).then(async () => {
      if (seq !== undefined) await queue.putBack(endpointId, seq, { workerId, lease });
      queue.stops.settle(endpointId, workerId, jobId);
      this.#send(`A ${jobId} ${lease}`);
    }));
  }

  /** With a number it is acknowledged. Those of one job that come while others of it are written are written together. */
  #chunk(jobId: string, held: string, body: string): void {
    const { queue, endpointId, workerId } = this.#parts;
    const numbered = leaseAndNumber(held);
    const seq = seqOf(jobId);
    if (numbered === undefined) {
      if (seq !== undefined) this.#follow(jobId, this.#before(jobId).then(() => queue.streams.append(endpointId, seq, { workerId, lease: held }, readChunks(body))));
      return;
    }
    const { lease, number } = numbered;
    const said: NumberedChunk = { number, texts: readChunks(body) };
    const open = this.#gathering.get(jobId);
    if (open !== undefined && open.lease === lease && open.size < LARGEST_GATHERING) {
      open.size += body.length + CHUNK_OVERHEAD;
      open.highest = Math.max(open.highest, number);
      return void open.said.push(said);
    }
    const gathered: Gathering = { lease, said: [said], highest: number, size: body.length + CHUNK_OVERHEAD };
    this.#follow(jobId, this.#before(jobId).then(async () => {
      if (this.#gathering.get(jobId) === gathered) this.#gathering.delete(jobId);
      if (seq !== undefined) await queue.streams.appendNumbered(endpointId, seq, { workerId, lease }, gathered.said);
      this.#send(`K ${jobId} ${lease} ${gathered.highest}`);
    }));
    this.#gathering.set(jobId, gathered);
  }

  /** Of values that come while another one is written, the last is shown. */
  #progress(jobId: string, lease: string, body: string): void {
    const { queue, endpointId, workerId } = this.#parts;
    const seq = seqOf(jobId);
    if (seq === undefined) return;
    const open = this.#showing.get(jobId);
    if (open?.lease === lease) return void (open.body = body);
    const shown: Showing = { lease, body };
    this.#follow(jobId, this.#before(jobId).then(() => {
      if (this.#showing.get(jobId) === shown) this.#showing.delete(jobId);
      return queue.progress(endpointId, seq, { workerId, lease }, readValue(shown.body));
    }));
    this.#showing.set(jobId, shown);
  }

  /** Resolves when all is kept that was said about a job before. */
  #before(jobId: string): Promise<void> {
    if (this.#endings.has(jobId)) this.#finish();
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

  /** What could not be kept is not acknowledged; on its next connection the worker says it again. */
  #watch(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#parts.log.warn({ err: error, workerId: this.#parts.workerId }, 'what a worker said could not be kept; its connection is closed so that it says it again');
      this.#parts.socket.destroy();
    });
  }

  #lookForStops(): void {
    const { queue, endpointId, workerId } = this.#parts;
    void (async () => {
      while (!this.#over) {
        const jobs = await queue.jobsToStop(endpointId, workerId, POLL_MS, this.#gone);
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
    }, ACKNOWLEDGE_MS);
  }

  #flush(): void {
    this.#leaving = false;
    const lines = this.#outgoing;
    this.#outgoing = [];
    if (lines.length > 0 && !this.#parts.socket.destroyed) this.#parts.socket.write(`${lines.join('\n')}\n`);
  }

  #closed(): void {
    const { queue, endpointId, workerId, words, log } = this.#parts;
    clearTimeout(this.#acknowledgeTimer);
    clearInterval(this.#silenceTimer);
    words.forget(endpointId, workerId);
    this.#gone.depart();
    const since = queue.presence.now();
    setTimeout(() => {
      queue.caretaker.workerLeft(endpointId, workerId, since, 'the worker that ran the job went away').catch((error: unknown) => log.warn({ err: error }, 'the jobs of a worker that went away could not be put back'));
    }, RETURN_WITHIN_MS).unref();
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

/** `<n>` or `<n> <m>` */
function numbers(rest: string): [number, number] {
  const [first = '', second = ''] = rest.split(' ');
  return [Math.max(0, Number.parseInt(first, 10) || 0), Math.max(0, Number.parseInt(second, 10) || 0)];
}

/** `<jobId> <lease>` */
function names(rest: string): [string, string] {
  const space = rest.indexOf(' ');
  if (space === -1) throw new Error('a line with too few fields');
  return [rest.slice(0, space), rest.slice(space + 1)];
}

/** `<lease>`, or `<lease>~<milliseconds>` where the job waited in the worker before it began. */
function waitedFor(held: string): [lease: string, milliseconds: number] {
  const mark = held.indexOf('~');
  return mark === -1 ? [held, 0] : [held.slice(0, mark), Math.max(0, Number.parseInt(held.slice(mark + 1), 10) || 0)];
}

/** `<jobId> <lease> <json>` */
function fields(rest: string): [string, string, string] {
  const first = rest.indexOf(' ');
  const second = rest.indexOf(' ', first + 1);
  if (first === -1 || second === -1) throw new Error('a line with too few fields');
  return [rest.slice(0, first), rest.slice(first + 1, second), rest.slice(second + 1)];
}
