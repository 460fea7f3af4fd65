import type { Job } from '../handler.ts';
import type { TakenJob } from '../job-source.ts';
import type { ChannelConnection } from './channel-connection.ts';
import type { ChannelJob, NumberedChunk, ChannelJobOutbox } from './channel-job.ts';
import { UnacknowledgedChunks } from './unacknowledged-chunks.ts';
import type { ServerFeatures } from './channel-upgrade.ts';

export interface ChannelOutboxOptions {
  /** The way over HTTP for a job that came over the channel. */
  httpFallback(job: Job): TakenJob;
  /** A job that was to go back cannot: it is run after all. */
  onReturnFailed(delivery: ChannelJob): void;
  /** The last result that was not acknowledged is. */
  onAllAcknowledged(): void;
}

/** A result that is not acknowledged, or a job on its way back. */
interface PendingReport {
  delivery: ChannelJob;
  /** Undefined where the job was not begun and goes back. */
  result: { body: string; streamed: boolean } | undefined;
  sentAt: number;
  /** On how many connections it was sent. */
  connectionsTried: number;
  /** It is on its way over HTTP. */
  movedToHttp: boolean;
}

/** A result that was sent on so many connections, and each of them broke, may be what broke them. It goes over HTTP, where the server can say so. */
const MAX_CONNECTIONS_PER_REPORT = 3;
/** With so many results not acknowledged, jobs keep their places: the server is behind. */
const MAX_UNACKNOWLEDGED = 10_000;
const NO_FEATURES: ServerFeatures = {
  acceptsReturns: false,
  acknowledgesChunks: false,
  answersHeartbeats: false,
};

/**
 * What this worker says of its jobs. Every result and every chunk with a number is kept until it is acknowledged, and sent again on the
 * next connection; where there is none to be had, it goes over HTTP.
 */
export class ChannelOutbox implements ChannelJobOutbox {
  readonly #options: ChannelOutboxOptions;
  #channel: ChannelConnection | undefined;
  #features = NO_FEATURES;
  /** No channel is to be had now: everything goes over HTTP. */
  #withoutChannel = false;
  #closed = false;
  /** The jobs without a result. */
  readonly #deliveries = new Map<string, ChannelJob>();
  readonly #reports = new Map<string, PendingReport>();
  readonly #unacknowledged = new UnacknowledgedChunks();
  /** Those with a value to show that was not sent yet. */
  readonly #withProgress = new Set<ChannelJob>();
  /** Chunks without a number that wait for a connection. */
  #chunks: { delivery: ChannelJob; body: string }[] = [];
  /** Who waits until more can be sent. */
  #waiting: (() => void)[] = [];

  constructor(parts: ChannelOutboxOptions) {
    this.#options = parts;
  }

  /** A job has come. False where this attempt has come before. */
  register(delivery: ChannelJob): boolean {
    if (this.#deliveries.has(delivery.leaseName) || this.#reports.has(delivery.leaseName)) return false;
    this.#deliveries.set(delivery.leaseName, delivery);
    return true;
  }

  /** The jobs whose results are not acknowledged. They are still in this worker's hands. */
  unacknowledgedJobIds(): string[] {
    return [...this.#reports.values()].map(({ delivery }) => delivery.job.id);
  }

  get allAcknowledged(): boolean {
    return this.#reports.size === 0;
  }

  /** Since when something is not acknowledged. */
  get oldestUnacknowledgedAt(): number {
    const [oldest] = this.#reports.values();
    return Math.min(oldest?.sentAt ?? Infinity, this.#unacknowledged.since ?? Infinity);
  }

  // What the deliveries say.

  /** It leaves with what is written next. A later value takes the place of one that has not left by then. */
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

  /** A job that was not begun. False where nobody would hear it. */
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

  /** Nothing more is said of it. */
  forget(delivery: ChannelJob): void {
    this.#deliveries.delete(delivery.leaseName);
    this.#withProgress.delete(delivery);
    this.#unacknowledged.remove(delivery.leaseName);
    this.#chunks = this.#chunks.filter((chunk) => chunk.delivery !== delivery);
    this.#move();
  }

  // What the server says.

  onAcknowledged(name: string): void {
    // The server hears a result after the chunks of its job.
    this.#unacknowledged.remove(name);
    if (!this.#reports.delete(name)) return;
    this.resumeWriters();
    if (this.allAcknowledged) this.#options.onAllAcknowledged();
  }

  /** `<jobId> <lease> <number>` */
  onChunksAcknowledged(told: string): void {
    const space = told.lastIndexOf(' ');
    const upTo = Number(told.slice(space + 1));
    if (!Number.isSafeInteger(upTo)) return;
    this.#unacknowledged.acknowledge(told.slice(0, space), upTo);
    this.resumeWriters();
  }

  // The connection.

  /** There is one: whatever was not sent or not acknowledged goes with it. */
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

  /** The connection is about to be written to. */
  beforeWrite(channel: ChannelConnection): void {
    this.#show((delivery, value) => channel.send(`P ${delivery.leaseName} ${value}`));
  }

  /** It broke. Among the lines that were never written, chunks without a number wait for the next one; results and the other chunks are kept anyway. */
  disconnect(unwritten: readonly string[]): void {
    this.#channel = undefined;
    for (const line of unwritten) {
      if (!line.startsWith('S ')) continue;
      const nameEnd = line.indexOf(' ', line.indexOf(' ', 2) + 1);
      const name = line.slice(2, nameEnd);
      // The name of a numbered one has a mark, and is nobody's.
      const delivery = this.#deliveries.get(name) ?? this.#reports.get(name)?.delivery;
      if (delivery !== undefined) this.#chunks.push({ delivery, body: line.slice(nameEnd + 1) });
    }
  }

  /** There is no channel any more: what was to be sent over it goes over HTTP. */
  moveToHttp(): void {
    this.#withoutChannel = true;
    for (const { delivery, body } of this.#chunks) void this.#viaHttp(delivery).chunk(body);
    this.#chunks = [];
    for (const { delivery } of this.#unacknowledged.streams()) this.#moveChunks(delivery);
    this.#show((delivery, value) => this.#viaHttp(delivery).progress(value));
    for (const [name, parcel] of this.#reports) if (!parcel.movedToHttp) this.#moveReport(name, parcel);
    this.#move();
  }

  /** What was written is on its way, or less is waiting for its acknowledgement: who waits goes on. */
  resumeWriters(): void {
    if (this.#waiting.length > 0 && this.#hasSpace) this.#move();
  }

  /** Nothing more goes over the channel. Answers the jobs whose results are given up. */
  close(): string[] {
    const given = this.unacknowledgedJobIds();
    this.#reports.clear();
    this.#closed = true;
    return given;
  }

  // How it works.

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

  /** A server that takes jobs back also wants to know how long one waited here before it began. */
  #line({ delivery: { leaseName, waitedMs }, result }: PendingReport): string {
    if (result === undefined) return `B ${leaseName}`;
    return this.#features.acceptsReturns && waitedMs > 0
      ? `D ${leaseName}~${waitedMs} ${result.body}`
      : `D ${leaseName} ${result.body}`;
  }

  /** Before the results of their jobs. */
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
      // A server that does not know numbers gets each once. It does not say what it keeps.
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

  /** Under their numbers: some of them may be kept already. */
  #moveChunks(delivery: ChannelJob): void {
    for (const { number, body } of this.#unacknowledged.remove(delivery.leaseName))
      void this.#viaHttp(delivery).chunk(body, delivery.chunkId(number));
  }

  #moveReport(name: string, parcel: PendingReport): void {
    const { delivery, result } = parcel;
    parcel.movedToHttp = true;
    const way = this.#viaHttp(delivery);
    if (result === undefined) {
      // Over HTTP a job cannot go back. It was not begun, so it is run here after all.
      this.onAcknowledged(name);
      return this.#options.onReturnFailed(delivery);
    }
    this.#moveChunks(delivery);
    void way.finish(result.body, result.streamed)?.then(() => this.onAcknowledged(name));
  }

  /** Undefined where more can be sent at once. */
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
