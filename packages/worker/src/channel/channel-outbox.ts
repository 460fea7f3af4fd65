import type { Job } from '../handler.ts';
import type { TakenJob } from '../job-source.ts';
import type { ChannelConnection } from './channel-connection.ts';
import type { ChannelJob, NumberedChunk, ChannelJobOutbox } from './channel-job.ts';
import { UnacknowledgedChunks } from './unacknowledged-chunks.ts';
import type { ServerFeatures } from './channel-upgrade.ts';

export interface ChannelOutboxOptions {
  /** Creates the HTTP delivery for a job that came over the channel. */
  httpFallback(job: Job): TakenJob;
  /** A job that was to be returned to the queue cannot be: run it after all. */
  onReturnFailed(delivery: ChannelJob): void;
  /** All results are acknowledged. */
  onAllAcknowledged(): void;
}

/** A result that is not acknowledged, or a job that is being returned to the queue. */
interface PendingReport {
  delivery: ChannelJob;
  /** Undefined where the job was not started and is being returned. */
  result: { body: string; streamed: boolean } | undefined;
  sentAt: number;
  /** On how many connections it was sent. */
  connectionsTried: number;
  /** It is being posted over HTTP. */
  movedToHttp: boolean;
}

/**
 * A result that was sent on this many connections, all of which broke, may be what broke them. It goes over
 * HTTP, where the server can report an error.
 */
const MAX_CONNECTIONS_PER_REPORT = 3;
/** With this many unacknowledged results, finished jobs keep their slots: the server is behind. */
const MAX_UNACKNOWLEDGED = 10_000;
const NO_FEATURES: ServerFeatures = {
  acceptsReturns: false,
  acknowledgesChunks: false,
  answersHeartbeats: false,
};

/**
 * What this worker reports about its jobs. Every result and every numbered chunk is kept until it is
 * acknowledged and sent again on the next connection. Where no connection can be had, they go over HTTP.
 */
export class ChannelOutbox implements ChannelJobOutbox {
  readonly #options: ChannelOutboxOptions;
  #channel: ChannelConnection | undefined;
  #features = NO_FEATURES;
  /** The channel is not available: everything goes over HTTP. */
  #withoutChannel = false;
  #closed = false;
  /** Jobs without a result. */
  readonly #deliveries = new Map<string, ChannelJob>();
  readonly #reports = new Map<string, PendingReport>();
  readonly #unacknowledged = new UnacknowledgedChunks();
  /** Jobs with a progress value that was not sent yet. */
  readonly #withProgress = new Set<ChannelJob>();
  /** Unnumbered chunks that wait for a connection. */
  #chunks: { delivery: ChannelJob; body: string }[] = [];
  /** Callers that wait until more can be sent. */
  #waiting: (() => void)[] = [];

  constructor(options: ChannelOutboxOptions) {
    this.#options = options;
  }

  /** Registers a job. False where this attempt was registered before. */
  register(delivery: ChannelJob): boolean {
    if (this.#deliveries.has(delivery.leaseName) || this.#reports.has(delivery.leaseName)) return false;
    this.#deliveries.set(delivery.leaseName, delivery);
    return true;
  }

  /**
   * Jobs whose results are not acknowledged. This worker still holds them; a returned job it does not, which may
   * be on its way here again.
   */
  unacknowledgedJobIds(): string[] {
    return [...this.#reports.values()]
      .filter(({ result }) => result !== undefined)
      .map(({ delivery }) => delivery.job.id);
  }

  get allAcknowledged(): boolean {
    return this.#reports.size === 0;
  }

  /** Since when the oldest entry is unacknowledged. */
  get oldestUnacknowledgedAt(): number {
    const [oldest] = this.#reports.values();
    return Math.min(oldest?.sentAt ?? Infinity, this.#unacknowledged.since ?? Infinity);
  }

  // Called by deliveries.

  /** Sent with the next write. A later value replaces one that was not sent by then. */
  sendProgress(delivery: ChannelJob, value: string): void {
    if (this.#usesHttp) return this.#viaHttp(delivery).progress(value);
    delivery.pendingProgress = value;
    this.#withProgress.add(delivery);
    this.#channel?.scheduleWrite();
  }

  sendChunk(delivery: ChannelJob, chunk: NumberedChunk): Promise<void> | undefined {
    const { number, body } = chunk;
    if (this.#usesHttp) return this.#viaHttp(delivery).chunk(body, delivery.chunkId(number));
    if (this.#channel !== undefined && !this.#features.acknowledgesChunks) delivery.numbersChunks = false;
    if (delivery.numbersChunks) this.#unacknowledged.add(delivery, chunk, this.#channel !== undefined);
    else if (this.#channel === undefined) this.#chunks.push({ delivery, body });
    this.#channel?.send(chunkLine(delivery, chunk));
    return this.#untilSent();
  }

  sendResult(delivery: ChannelJob, body: string, streamed: boolean): Promise<void> | undefined {
    this.#deliveries.delete(delivery.leaseName);
    this.#withProgress.delete(delivery);
    if (this.#usesHttp) return this.#viaHttp(delivery).finish(body, streamed);
    this.#post(delivery, { body, streamed });
    return this.#reports.size > MAX_UNACKNOWLEDGED || this.#channel?.congested === true
      ? this.#untilSent()
      : undefined;
  }

  /** Returns an unstarted job. False where there is no connection to send it on. */
  sendReturn(delivery: ChannelJob): boolean {
    if (
      !this.#features.acceptsReturns ||
      this.#usesHttp ||
      this.#channel === undefined ||
      this.#channel.ended
    )
      return false;
    this.#deliveries.delete(delivery.leaseName);
    this.#post(delivery, undefined);
    return true;
  }

  /** Drops everything about this job. */
  forget(delivery: ChannelJob): void {
    this.#deliveries.delete(delivery.leaseName);
    this.#withProgress.delete(delivery);
    this.#unacknowledged.remove(delivery.leaseName);
    this.#chunks = this.#chunks.filter((chunk) => chunk.delivery !== delivery);
    this.#move();
  }

  // Lines from the server.

  onAcknowledged(name: string): void {
    // The server reads a result after the chunks of its job, so this acknowledges those as well.
    this.#unacknowledged.remove(name);
    if (!this.#reports.delete(name)) return;
    this.resumeWriters();
    if (this.allAcknowledged) this.#options.onAllAcknowledged();
  }

  /** `<jobId> <lease> <number>` */
  onChunksAcknowledged(confirmation: string): void {
    const space = confirmation.lastIndexOf(' ');
    const upTo = Number(confirmation.slice(space + 1));
    if (!Number.isSafeInteger(upTo)) return;
    this.#unacknowledged.acknowledge(confirmation.slice(0, space), upTo);
    this.resumeWriters();
  }

  // Connection events.

  /** A connection is open: everything unsent or unacknowledged is sent on it. */
  connect(channel: ChannelConnection, terms: ServerFeatures): void {
    this.#channel = channel;
    this.#features = terms;
    this.#withoutChannel = false;
    for (const { delivery, body } of this.#chunks) channel.send(`S ${delivery.leaseName} ${body}`);
    this.#chunks = [];
    this.#resendUnacknowledged(channel);
    for (const [name, parcel] of this.#reports) {
      if (parcel.movedToHttp) continue;
      if (parcel.connectionsTried === MAX_CONNECTIONS_PER_REPORT) this.#moveReport(name, parcel);
      else channel.send(this.#line(parcel));
      parcel.connectionsTried += 1;
    }
    this.resumeWriters();
  }

  /** The connection is about to write. */
  beforeWrite(channel: ChannelConnection): void {
    this.#show((delivery, value) => channel.send(`P ${delivery.leaseName} ${value}`));
  }

  /**
   * The connection broke. Unnumbered chunks among the unwritten lines wait for the next connection; results
   * and numbered chunks are kept anyway.
   */
  disconnect(unwritten: readonly string[]): void {
    this.#channel = undefined;
    for (const line of unwritten) {
      if (!line.startsWith('S ')) continue;
      const nameEnd = line.indexOf(' ', line.indexOf(' ', 2) + 1);
      const name = line.slice(2, nameEnd);
      // The key of a numbered chunk has a marker and matches no job.
      const delivery = this.#deliveries.get(name) ?? this.#reports.get(name)?.delivery;
      if (delivery !== undefined) this.#chunks.push({ delivery, body: line.slice(nameEnd + 1) });
    }
  }

  /** The channel is no longer available: everything unsent goes over HTTP. */
  moveToHttp(): void {
    this.#withoutChannel = true;
    for (const { delivery, body } of this.#chunks) void this.#viaHttp(delivery).chunk(body);
    this.#chunks = [];
    for (const { delivery } of this.#unacknowledged.streams()) this.#moveChunks(delivery);
    this.#show((delivery, value) => this.#viaHttp(delivery).progress(value));
    for (const [name, parcel] of this.#reports) if (!parcel.movedToHttp) this.#moveReport(name, parcel);
    this.#move();
  }

  /** Data was flushed or acknowledged: waiting callers continue. */
  resumeWriters(): void {
    if (this.#waiting.length > 0 && this.#hasSpace) this.#move();
  }

  /** Nothing more is sent over the channel. Returns the jobs whose results are dropped. */
  close(): string[] {
    const given = this.unacknowledgedJobIds();
    this.#reports.clear();
    this.#closed = true;
    return given;
  }

  // Internals.

  #post(delivery: ChannelJob, result: PendingReport['result']): void {
    const parcel: PendingReport = {
      delivery,
      result,
      sentAt: Date.now(),
      connectionsTried: this.#channel === undefined ? 0 : 1,
      movedToHttp: false,
    };
    this.#reports.set(delivery.leaseName, parcel);
    this.#channel?.send(this.#line(parcel));
  }

  /** A server that accepts returned jobs also wants to know how long a job waited here before it started. */
  #line({ delivery: { leaseName, waitedMs }, result }: PendingReport): string {
    if (result === undefined) return `B ${leaseName}`;
    return this.#features.acceptsReturns && waitedMs > 0
      ? `D ${leaseName}~${waitedMs} ${result.body}`
      : `D ${leaseName} ${result.body}`;
  }

  /** Sent before the results of their jobs. */
  #resendUnacknowledged(channel: ChannelConnection): void {
    for (const stream of this.#unacknowledged.streams()) {
      const { delivery, chunks } = stream;
      if (stream.connectionsTried === MAX_CONNECTIONS_PER_REPORT) {
        this.#moveChunks(delivery);
        const parcel = this.#reports.get(delivery.leaseName);
        if (parcel !== undefined && !parcel.movedToHttp) this.#moveReport(delivery.leaseName, parcel);
        continue;
      }
      stream.connectionsTried += 1;
      // A server without support for numbers gets each chunk once, because it does not acknowledge chunks.
      if (!this.#features.acknowledgesChunks) {
        delivery.numbersChunks = false;
        this.#unacknowledged.remove(delivery.leaseName);
      }
      for (const chunk of chunks) channel.send(chunkLine(delivery, chunk));
    }
  }

  #show(send: (delivery: ChannelJob, value: string) => void): void {
    for (const delivery of this.#withProgress) send(delivery, delivery.pendingProgress);
    this.#withProgress.clear();
  }

  get #usesHttp(): boolean {
    return this.#withoutChannel || this.#closed;
  }

  #viaHttp(delivery: ChannelJob): TakenJob {
    return delivery.moveToHttp(this.#options.httpFallback(delivery.job));
  }

  /** Sent with their numbers: the server may have stored some of them already. */
  #moveChunks(delivery: ChannelJob): void {
    for (const { number, body } of this.#unacknowledged.remove(delivery.leaseName))
      void this.#viaHttp(delivery).chunk(body, delivery.chunkId(number));
  }

  #moveReport(name: string, parcel: PendingReport): void {
    const { delivery, result } = parcel;
    parcel.movedToHttp = true;
    const httpJob = this.#viaHttp(delivery);
    if (result === undefined) {
      // HTTP has no way to return a job. It was not started, so it is run here after all.
      this.onAcknowledged(name);
      return this.#options.onReturnFailed(delivery);
    }
    this.#moveChunks(delivery);
    void httpJob.finish(result.body, result.streamed)?.then(() => this.onAcknowledged(name));
  }

  /** Undefined where more can be sent right away. */
  #untilSent(): Promise<void> | undefined {
    return this.#hasSpace ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  get #hasSpace(): boolean {
    return (
      this.#channel?.congested === false &&
      this.#reports.size <= MAX_UNACKNOWLEDGED &&
      !this.#unacknowledged.full
    );
  }

  #move(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

function chunkLine(delivery: ChannelJob, { number, body }: NumberedChunk): string {
  return delivery.numbersChunks
    ? `S ${delivery.leaseName}~${number} ${body}`
    : `S ${delivery.leaseName} ${body}`;
}
