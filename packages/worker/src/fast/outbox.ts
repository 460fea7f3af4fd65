import type { Job } from '../handler.ts';
import type { Delivery } from '../job-source.ts';
import type { Channel } from './channel.ts';
import type { FastDelivery } from './delivery.ts';
import { UnkeptChunks } from './unkept-chunks.ts';
import type { UnkeptChunk } from './unkept-chunks.ts';
import type { ServerTerms } from './upgrade.ts';

export interface OutboxParts {
  /** The way over HTTP for a job that came over the channel. */
  elsewhere(job: Job): Delivery;
  /** A job that was to go back cannot: it is run after all. */
  onStays(delivery: FastDelivery): void;
  /** The last result that was not acknowledged is. */
  onSettled(): void;
}

/** A result that is not acknowledged, or a job on its way back. */
interface Parcel {
  delivery: FastDelivery;
  /** Undefined where the job was not begun and goes back. */
  result: { body: string; streamed: boolean } | undefined;
  sentAt: number;
  /** On how many connections it was sent. */
  sent: number;
  /** It is on its way over HTTP. */
  moved: boolean;
}

/** A result that was sent on so many connections, and each of them broke, may be what broke them. It goes over HTTP, where the server can say so. */
const MOST_CONNECTIONS = 3;
/** With so many results not acknowledged, jobs keep their places: the server is behind. */
const MOST_UNACKNOWLEDGED = 10_000;
const NO_TERMS: ServerTerms = { takesBack: false, keepsChunks: false, answers: false };

/**
 * What this worker says of its jobs. Every result and every chunk with a number is kept until it is acknowledged, and sent again on the
 * next connection; where there is none to be had, it goes over HTTP.
 */
export class Outbox {
  readonly #parts: OutboxParts;
  #channel: Channel | undefined;
  #terms = NO_TERMS;
  /** No channel is to be had now: everything goes over HTTP. */
  #withoutChannel = false;
  #closed = false;
  /** The jobs without a result. */
  readonly #deliveries = new Map<string, FastDelivery>();
  readonly #parcels = new Map<string, Parcel>();
  readonly #unkept = new UnkeptChunks();
  /** Those with a value to show that was not sent yet. */
  readonly #showing = new Set<FastDelivery>();
  /** Chunks without a number that wait for a connection. */
  #chunks: { delivery: FastDelivery; body: string }[] = [];
  /** Who waits until more can be sent. */
  #waiting: (() => void)[] = [];

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  /** A job has come. False where this attempt has come before. */
  expect(delivery: FastDelivery): boolean {
    if (this.#deliveries.has(delivery.name) || this.#parcels.has(delivery.name)) return false;
    this.#deliveries.set(delivery.name, delivery);
    return true;
  }

  /** The jobs whose results are not acknowledged. They are still in this worker's hands. */
  unacknowledged(): string[] {
    return [...this.#parcels.values()].map(({ delivery }) => delivery.job.id);
  }

  get settled(): boolean {
    return this.#parcels.size === 0;
  }

  /** Since when something is not acknowledged. */
  get since(): number {
    const [oldest] = this.#parcels.values();
    return Math.min(oldest?.sentAt ?? Infinity, this.#unkept.since ?? Infinity);
  }

  // What the deliveries say.

  /** It leaves with what is written next. A later value takes the place of one that has not left by then. */
  sendProgress(delivery: FastDelivery, value: string): void {
    if (this.#goesElsewhere) return this.#elsewhere(delivery).progress(value);
    delivery.progressToSend = value;
    this.#showing.add(delivery);
    this.#channel?.wake();
  }

  sendChunk(delivery: FastDelivery, chunk: UnkeptChunk): Promise<void> | undefined {
    const { number, body } = chunk;
    if (this.#goesElsewhere) return this.#elsewhere(delivery).chunk(body, delivery.markOf(number));
    if (this.#channel !== undefined && !this.#terms.keepsChunks) delivery.numbered = false;
    if (delivery.numbered) this.#unkept.add(delivery, chunk, this.#channel !== undefined);
    else if (this.#channel === undefined) this.#chunks.push({ delivery, body });
    this.#channel?.send(chunkLine(delivery, chunk));
    return this.#untilSent();
  }

  sendResult(delivery: FastDelivery, body: string, streamed: boolean): Promise<void> | undefined {
    this.#deliveries.delete(delivery.name);
    this.#showing.delete(delivery);
    if (this.#goesElsewhere) return this.#elsewhere(delivery).finish(body, streamed);
    this.#post(delivery, { body, streamed });
    return this.#parcels.size > MOST_UNACKNOWLEDGED || this.#channel?.congested === true
      ? this.#untilSent()
      : undefined;
  }

  /** A job that was not begun. False where nobody would hear it. */
  sendBack(delivery: FastDelivery): boolean {
    if (!this.#terms.takesBack || this.#goesElsewhere || this.#channel === undefined || this.#channel.ended)
      return false;
    this.#deliveries.delete(delivery.name);
    this.#post(delivery, undefined);
    return true;
  }

  /** Nothing more is said of it. */
  forget(delivery: FastDelivery): void {
    this.#deliveries.delete(delivery.name);
    this.#showing.delete(delivery);
    this.#unkept.remove(delivery.name);
    this.#chunks = this.#chunks.filter((chunk) => chunk.delivery !== delivery);
    this.#move();
  }

  // What the server says.

  acknowledged(name: string): void {
    // The server hears a result after the chunks of its job.
    this.#unkept.remove(name);
    if (!this.#parcels.delete(name)) return;
    this.moveIfSpace();
    if (this.settled) this.#parts.onSettled();
  }

  /** `<jobId> <lease> <number>` */
  chunksKept(told: string): void {
    const space = told.lastIndexOf(' ');
    const upTo = Number(told.slice(space + 1));
    if (!Number.isSafeInteger(upTo)) return;
    this.#unkept.kept(told.slice(0, space), upTo);
    this.moveIfSpace();
  }

  // The connection.

  /** There is one: whatever was not sent or not acknowledged goes with it. */
  connect(channel: Channel, terms: ServerTerms): void {
    this.#channel = channel;
    this.#terms = terms;
    this.#withoutChannel = false;
    for (const { delivery, body } of this.#chunks) channel.send(`S ${delivery.name} ${body}`);
    this.#chunks = [];
    this.#sendUnkept(channel);
    for (const [name, parcel] of this.#parcels) {
      if (parcel.moved) continue;
      if (parcel.sent === MOST_CONNECTIONS) this.#moveParcel(name, parcel);
      else channel.send(this.#line(parcel));
      parcel.sent += 1;
    }
    this.moveIfSpace();
  }

  /** The connection is about to be written to. */
  beforeWrite(channel: Channel): void {
    this.#show((delivery, value) => channel.send(`P ${delivery.name} ${value}`));
  }

  /** It broke. Among the lines that were never written, chunks without a number wait for the next one; results and the other chunks are kept anyway. */
  disconnect(unwritten: readonly string[]): void {
    this.#channel = undefined;
    for (const line of unwritten) {
      if (!line.startsWith('S ')) continue;
      const nameEnd = line.indexOf(' ', line.indexOf(' ', 2) + 1);
      const name = line.slice(2, nameEnd);
      // The name of a numbered one has a mark, and is nobody's.
      const delivery = this.#deliveries.get(name) ?? this.#parcels.get(name)?.delivery;
      if (delivery !== undefined) this.#chunks.push({ delivery, body: line.slice(nameEnd + 1) });
    }
  }

  /** There is no channel any more: what was to be sent over it goes over HTTP. */
  moveElsewhere(): void {
    this.#withoutChannel = true;
    for (const { delivery, body } of this.#chunks) void this.#elsewhere(delivery).chunk(body);
    this.#chunks = [];
    for (const { delivery } of this.#unkept.streams()) this.#moveChunks(delivery);
    this.#show((delivery, value) => this.#elsewhere(delivery).progress(value));
    for (const [name, parcel] of this.#parcels) if (!parcel.moved) this.#moveParcel(name, parcel);
    this.#move();
  }

  /** What was written is on its way, or less is waiting for its acknowledgement: who waits goes on. */
  moveIfSpace(): void {
    if (this.#waiting.length > 0 && this.#hasSpace) this.#move();
  }

  /** Nothing more goes over the channel. Answers the jobs whose results are given up. */
  close(): string[] {
    const given = this.unacknowledged();
    this.#parcels.clear();
    this.#closed = true;
    return given;
  }

  // How it works.

  #post(delivery: FastDelivery, result: Parcel['result']): void {
    const parcel: Parcel = {
      delivery,
      result,
      sentAt: Date.now(),
      sent: this.#channel === undefined ? 0 : 1,
      moved: false,
    };
    this.#parcels.set(delivery.name, parcel);
    this.#channel?.send(this.#line(parcel));
  }

  /** A server that takes jobs back also wants to know how long one waited here before it began. */
  #line({ delivery: { name, waitedMs }, result }: Parcel): string {
    if (result === undefined) return `B ${name}`;
    return this.#terms.takesBack && waitedMs > 0
      ? `D ${name}~${waitedMs} ${result.body}`
      : `D ${name} ${result.body}`;
  }

  /** Before the results of their jobs. */
  #sendUnkept(channel: Channel): void {
    for (const stream of this.#unkept.streams()) {
      const { delivery, chunks } = stream;
      if (stream.sent === MOST_CONNECTIONS) {
        this.#moveChunks(delivery);
        const parcel = this.#parcels.get(delivery.name);
        if (parcel !== undefined && !parcel.moved) this.#moveParcel(delivery.name, parcel);
        continue;
      }
      stream.sent += 1;
      // A server that does not know numbers gets each once. It does not say what it keeps.
      if (!this.#terms.keepsChunks) {
        delivery.numbered = false;
        this.#unkept.remove(delivery.name);
      }
      for (const chunk of chunks) channel.send(chunkLine(delivery, chunk));
    }
  }

  #show(send: (delivery: FastDelivery, value: string) => void): void {
    for (const delivery of this.#showing) send(delivery, delivery.progressToSend);
    this.#showing.clear();
  }

  get #goesElsewhere(): boolean {
    return this.#withoutChannel || this.#closed;
  }

  #elsewhere(delivery: FastDelivery): Delivery {
    return delivery.moveTo(this.#parts.elsewhere(delivery.job));
  }

  /** Under their numbers: some of them may be kept already. */
  #moveChunks(delivery: FastDelivery): void {
    for (const { number, body } of this.#unkept.remove(delivery.name))
      void this.#elsewhere(delivery).chunk(body, delivery.markOf(number));
  }

  #moveParcel(name: string, parcel: Parcel): void {
    const { delivery, result } = parcel;
    parcel.moved = true;
    const way = this.#elsewhere(delivery);
    if (result === undefined) {
      // Over HTTP a job cannot go back. It was not begun, so it is run here after all.
      this.acknowledged(name);
      return this.#parts.onStays(delivery);
    }
    this.#moveChunks(delivery);
    void way.finish(result.body, result.streamed)?.then(() => this.acknowledged(name));
  }

  /** Undefined where more can be sent at once. */
  #untilSent(): Promise<void> | undefined {
    return this.#hasSpace ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  get #hasSpace(): boolean {
    return (
      this.#channel?.congested === false && this.#parcels.size <= MOST_UNACKNOWLEDGED && !this.#unkept.full
    );
  }

  #move(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

function chunkLine(delivery: FastDelivery, { number, body }: UnkeptChunk): string {
  return delivery.numbered ? `S ${delivery.name}~${number} ${body}` : `S ${delivery.name} ${body}`;
}
