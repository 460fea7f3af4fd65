import { messageOf } from '../failure.ts';
import type { Job } from '../handler.ts';
import type { Consumer, Delivery, JobSource } from '../job-source.ts';
import type { Log } from '../log.ts';
import { Backoff } from '../pace.ts';
import type { Pace } from '../pace.ts';
import { pause } from '../pause.ts';
import { isJob } from '../public/takes.ts';
import { Channel } from './channel.ts';
import { FastDelivery } from './delivery.ts';
import { UnkeptChunks } from './unkept-chunks.ts';
import type { UnkeptChunk } from './unkept-chunks.ts';
import { upgrade } from './upgrade.ts';
import type { Upgrade } from './upgrade.ts';

export interface FastSourceParts {
  address: string;
  apiKey: string;
  pingMs: number;
  log: Log;
  pace: Pace;
  /** The way over HTTP for a job that came over the channel. */
  elsewhere(job: Job): Delivery;
  /** The channel is open. */
  onOpen?(): void;
  /** The server does not offer the channel. Without this, it is tried again and again. */
  onRefused?(refusal: Upgrade & { kind: 'refused' }): void;
}

interface SentResult {
  delivery: FastDelivery;
  /** Undefined where the job was not begun and goes back. */
  body: string | undefined;
  streamed: boolean;
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

/**
 * Jobs over Berth's own channel: one connection, both ways, in batches. Every result is kept
 * until it is acknowledged, and sent again on the next connection. Credits are what the server
 * may still send on this connection; they follow the room that the consumer has.
 */
export class FastSource implements JobSource {
  readonly #parts: FastSourceParts;
  readonly #backoff: Backoff;
  /** Ends the waiting for a connection. */
  readonly #enough = new AbortController();
  #consumer: Consumer | undefined;
  #channel: Channel | undefined;
  #connecting: Promise<void> = Promise.resolve();
  #credits = 0;
  readonly #deliveries = new Map<string, FastDelivery>();
  readonly #results = new Map<string, SentResult>();
  readonly #unkept = new UnkeptChunks();
  /** Chunks without a number that wait for a connection. */
  #chunks: { delivery: FastDelivery; body: string }[] = [];
  /** Who waits until more can be sent. */
  #waiting: (() => void)[] = [];
  #onAcknowledged: (() => void) | undefined;
  /** The server does not offer the channel now: everything goes elsewhere. */
  #refused = false;
  /** This server stops: no credits any more, and another connection as soon as the results are acknowledged. */
  #serverStops = false;
  /** The server takes jobs back that were not begun, so some may be taken ahead. */
  #takesBack = false;
  /** The server acknowledges chunks that have a number. */
  #keepsChunks = false;
  /** The server answers heartbeats. */
  #answers = false;
  /** Since when one is not answered. */
  #unansweredSince = Infinity;
  #seemsDead = false;
  #leaving = false;
  #closing = false;

  constructor(parts: FastSourceParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(parts.pace);
  }

  open(consumer: Consumer): void {
    this.#consumer = consumer;
    this.tryAgain();
  }

  /** After a refusal. */
  tryAgain(): void {
    this.#connecting = this.#stayConnected();
  }

  roomShrank(): void {
    if (!this.#takesBack || this.#channel === undefined) return;
    this.#credits = 0;
    this.#channel.send('N');
  }

  roomGrew(): void {
    this.#channel?.wake();
  }

  leave(): Promise<void> {
    if (!this.#leaving) {
      this.#leaving = true;
      this.#channel?.send('Q');
    }
    return Promise.resolve();
  }

  async close(): Promise<void> {
    const { pace, log } = this.#parts;
    if (this.#results.size > 0) await Promise.race([this.#allAcknowledged(), pause(pace.lastResult, this.#enough.signal)]);
    for (const { delivery } of this.#results.values()) log.error('The result was given up: it was not acknowledged', delivery.job.id);
    this.#results.clear();
    this.#closing = true;
    this.#enough.abort();
    // Jobs may be on their way until the server has read Q. They arrive before it closes its side.
    this.#channel?.end(pace.farewell);
    await this.#connecting;
  }

  /** The jobs whose results are not acknowledged. They are still in this worker's hands. */
  unacknowledged(): string[] {
    return [...this.#results.values()].map(({ delivery }) => delivery.job.id);
  }

  /** Resolves to false where there is no channel to tell it on. */
  async tellUnhealthy(check: string, reason: string): Promise<boolean> {
    const { address, apiKey, pace } = this.#parts;
    const outcome = await upgrade(address, apiKey, pace.unhealthyReport, this.#enough.signal);
    if (outcome.kind !== 'opened') return false;
    await new Promise<void>((resolve) => {
      const channel = new Channel(outcome.socket, outcome.head, { line: () => undefined, beforeWrite: () => undefined, drained: () => undefined, closed: () => resolve() });
      channel.send(`U ${JSON.stringify({ check, reason })}`);
      channel.end(pace.unhealthyReport);
    });
    return true;
  }

  async reportUnhealthy(check: string, reason: string): Promise<void> {
    if (!(await this.tellUnhealthy(check, reason))) this.#parts.log.warn('The failed check could not be reported');
  }

  // What the deliveries say.

  sendProgress(delivery: FastDelivery, value: string): void {
    if (this.#goesElsewhere) this.#elsewhere(delivery).progress(value);
    else if (this.#channel === undefined) delivery.progressToSend = value;
    else this.#channel.send(`P ${delivery.name} ${value}`);
  }

  sendChunk(delivery: FastDelivery, chunk: UnkeptChunk): Promise<void> | undefined {
    const { number, body } = chunk;
    if (this.#goesElsewhere) return this.#elsewhere(delivery).chunk(body, delivery.markOf(number));
    if (this.#channel !== undefined && !this.#keepsChunks) delivery.numbered = false;
    if (delivery.numbered) this.#unkept.add(delivery, chunk, this.#channel !== undefined);
    else if (this.#channel === undefined) this.#chunks.push({ delivery, body });
    this.#channel?.send(chunkLine(delivery, chunk));
    return this.#untilSent();
  }

  sendResult(delivery: FastDelivery, body: string, streamed: boolean): Promise<void> | undefined {
    this.#deliveries.delete(delivery.name);
    if (this.#goesElsewhere) return this.#elsewhere(delivery).finish(body, streamed);
    this.#results.set(delivery.name, { delivery, body, streamed, sentAt: Date.now(), sent: this.#channel === undefined ? 0 : 1, moved: false });
    this.#channel?.send(this.#resultLine(delivery, body));
    return this.#results.size > MOST_UNACKNOWLEDGED || this.#channel?.congested === true ? this.#untilSent() : undefined;
  }

  /** A job that was not begun. False where nobody would hear it. */
  sendBack(delivery: FastDelivery): boolean {
    if (!this.#takesBack || this.#goesElsewhere || this.#channel === undefined || this.#channel.ended) return false;
    this.#deliveries.delete(delivery.name);
    this.#results.set(delivery.name, { delivery, body: undefined, streamed: false, sentAt: Date.now(), sent: 1, moved: false });
    this.#channel.send(this.#resultLine(delivery, undefined));
    return true;
  }

  /** A server that takes jobs back also wants to know how long one waited here before it began. */
  #resultLine({ name, waitedMs }: FastDelivery, body: string | undefined): string {
    if (body === undefined) return `B ${name}`;
    return this.#takesBack && waitedMs > 0 ? `D ${name}~${waitedMs} ${body}` : `D ${name} ${body}`;
  }

  forget(delivery: FastDelivery): void {
    this.#deliveries.delete(delivery.name);
    this.#unkept.remove(delivery.name);
    this.#chunks = this.#chunks.filter((chunk) => chunk.delivery !== delivery);
    this.#move();
  }

  get #goesElsewhere(): boolean {
    return this.#refused || this.#closing;
  }

  #elsewhere(delivery: FastDelivery): Delivery {
    return delivery.moveTo(this.#parts.elsewhere(delivery.job));
  }

  /** Undefined where more can be sent at once. */
  #untilSent(): Promise<void> | undefined {
    return this.#hasSpace ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  get #hasSpace(): boolean {
    return this.#channel?.congested === false && this.#results.size <= MOST_UNACKNOWLEDGED && !this.#unkept.full;
  }

  #moveIfSpace(): void {
    if (this.#waiting.length > 0 && this.#hasSpace) this.#move();
  }

  #move(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  // The connection.

  async #stayConnected(): Promise<void> {
    const { address, apiKey, log, pace, onRefused } = this.#parts;
    const { signal } = this.#enough;
    while (!signal.aborted) {
      const outcome = await upgrade(address, apiKey, pace.upgrade, signal);
      if (outcome.kind === 'opened') {
        this.#takesBack = outcome.takesBack;
        this.#keepsChunks = outcome.keepsChunks;
        this.#answers = outcome.answers;
        await this.#use(outcome.socket, outcome.head);
      } else if (signal.aborted) {
        return;
      } else if (outcome.kind === 'refused' && onRefused !== undefined) {
        this.#moveElsewhere();
        onRefused(outcome);
        return;
      } else {
        log.warn(`There is no connection to the server: ${outcome.why}`);
      }
      await pause(this.#backoff.next(), signal);
    }
  }

  /** Resolves when the connection is gone. */
  #use(socket: ConstructorParameters<typeof Channel>[0], head: Buffer): Promise<void> {
    const { pace, log, pingMs } = this.#parts;
    return new Promise((resolve) => {
      const channel = new Channel(socket, head, {
        line: (line) => this.#read(line),
        beforeWrite: () => this.#grantCredits(),
        drained: () => this.#moveIfSpace(),
        closed: (unwritten, why) => {
          clearInterval(heartbeat);
          this.#channel = undefined;
          this.#keepChunks(unwritten);
          if (Date.now() - channel.openedAt >= pace.goodConnection) this.#backoff.reset();
          if (!channel.ended) log.warn(`The connection to the server broke: ${why ?? 'the server closed it'}`);
          resolve();
        },
      });
      const heartbeat = setInterval(() => this.#beat(channel), pingMs);
      this.#channel = channel;
      this.#greet(channel);
    });
  }

  /** What a new connection begins with: what this worker has in hand, what was not sent or not acknowledged, and new credits. */
  #greet(channel: Channel): void {
    this.#credits = 0;
    this.#serverStops = false;
    this.#seemsDead = false;
    this.#refused = false;
    this.#parts.onOpen?.();
    this.#unansweredSince = Infinity;
    this.#sendList(channel);
    for (const { delivery, body } of this.#chunks) channel.send(`S ${delivery.name} ${body}`);
    this.#chunks = [];
    this.#sendUnkept(channel);
    for (const delivery of this.#deliveries.values()) {
      if (delivery.progressToSend !== undefined) channel.send(`P ${delivery.name} ${delivery.progressToSend}`);
      delivery.progressToSend = undefined;
    }
    for (const [name, result] of this.#results) {
      if (result.moved) continue;
      if (result.sent === MOST_CONNECTIONS) this.#moveResult(name, result);
      else channel.send(this.#resultLine(result.delivery, result.body));
      result.sent += 1;
    }
    if (this.#leaving) channel.send('Q');
    this.#moveIfSpace();
  }

  /** Before the results of their jobs. */
  #sendUnkept(channel: Channel): void {
    for (const stream of this.#unkept.streams()) {
      const { delivery, chunks } = stream;
      if (stream.sent === MOST_CONNECTIONS) {
        this.#moveChunks(delivery);
        const result = this.#results.get(delivery.name);
        if (result !== undefined && !result.moved) this.#moveResult(delivery.name, result);
        continue;
      }
      stream.sent += 1;
      // A server that does not know numbers gets each once. It does not say what it keeps.
      if (!this.#keepsChunks) {
        delivery.numbered = false;
        this.#unkept.remove(delivery.name);
      }
      for (const chunk of chunks) channel.send(chunkLine(delivery, chunk));
    }
  }

  #beat(channel: Channel): void {
    const [oldest] = this.#results.values();
    const since = Math.min(oldest?.sentAt ?? Infinity, this.#unkept.since ?? Infinity, this.#unansweredSince);
    const seemedDead = this.#seemsDead;
    this.#seemsDead = Math.max(since, channel.heardAt) < Date.now() - this.#parts.pace.deadConnection;
    // Twice: after a handler that kept the whole process busy, what the server said may not be read yet.
    if (seemedDead && this.#seemsDead) channel.destroy();
    else this.#sendList(channel);
  }

  /** The heartbeat: what this worker has in hand. */
  #sendList(channel: Channel): void {
    channel.send(`L ${[...new Set([...(this.#consumer?.held() ?? []), ...this.unacknowledged()])].join(',')}`);
    if (this.#answers) this.#unansweredSince = Math.min(this.#unansweredSince, Date.now());
  }

  #grantCredits(): void {
    if (this.#leaving || this.#serverStops || this.#channel === undefined || this.#consumer === undefined) return;
    const more = this.#consumer.room(this.#takesBack) - this.#credits;
    if (more <= 0 || (this.#takesBack && more < this.#consumer.step())) return;
    this.#credits += more;
    this.#channel.send(`T ${more}`);
  }

  #read(line: string): void {
    switch (line.charCodeAt(0)) {
      case 0x4a: // J
        return this.#readJob(line);
      case 0x41: // A
        return this.#acknowledged(line.slice(2));
      case 0x4b: // K
        return this.#chunksKept(line.slice(2));
      case 0x48: // H
        this.#unansweredSince = Infinity;
        return;
      case 0x58: // X
        this.#consumer?.stop(line.slice(2));
        return;
      case 0x47: // G
        return this.#serverGoes();
    }
  }

  #readJob(line: string): void {
    const leaseEnd = line.indexOf(' ', 2);
    this.#credits = Math.max(0, this.#credits - 1);
    let job: unknown;
    try {
      job = JSON.parse(line.slice(leaseEnd + 1));
    } catch (error) {
      this.#parts.log.error(`The server sent a job that is not JSON: ${messageOf(error)}`);
      return;
    }
    if (!isJob(job)) {
      this.#parts.log.error('The server sent a job without an id that is text; it is left out.');
      return;
    }
    const delivery = new FastDelivery(job, line.slice(2, leaseEnd), this);
    if (this.#deliveries.has(delivery.name) || this.#results.has(delivery.name)) return;
    this.#deliveries.set(delivery.name, delivery);
    this.#consumer?.deliver(delivery);
  }

  /** `<jobId> <lease> <number>` */
  #chunksKept(told: string): void {
    const space = told.lastIndexOf(' ');
    const upTo = Number(told.slice(space + 1));
    if (!Number.isSafeInteger(upTo)) return;
    this.#unkept.kept(told.slice(0, space), upTo);
    this.#moveIfSpace();
  }

  #acknowledged(name: string): void {
    // The server hears a result after the chunks of its job.
    this.#unkept.remove(name);
    if (!this.#results.delete(name)) return;
    this.#moveIfSpace();
    if (this.#results.size > 0) return;
    this.#onAcknowledged?.();
    if (this.#serverStops) this.#channel?.end(this.#parts.pace.farewell);
  }

  #allAcknowledged(): Promise<void> {
    return new Promise((resolve) => (this.#onAcknowledged = resolve));
  }

  #serverGoes(): void {
    const channel = this.#channel;
    if (channel === undefined) return;
    this.#parts.log.info('The server stops; this worker looks for another, or for its return.');
    this.#serverStops = true;
    const { farewell } = this.#parts.pace;
    if (this.#results.size === 0) channel.end(farewell);
    else setTimeout(() => channel.end(farewell), farewell);
  }

  /** Lines that were never written: chunks without a number among them go with the next connection. Results and the other chunks are kept anyway. */
  #keepChunks(unwritten: readonly string[]): void {
    for (const line of unwritten) {
      if (!line.startsWith('S ')) continue;
      const nameEnd = line.indexOf(' ', line.indexOf(' ', 2) + 1);
      const name = line.slice(2, nameEnd);
      // The name of a numbered one has a mark, and is nobody's.
      const delivery = this.#deliveries.get(name) ?? this.#results.get(name)?.delivery;
      if (delivery !== undefined) this.#chunks.push({ delivery, body: line.slice(nameEnd + 1) });
    }
  }

  /** There is no channel any more: what was to be sent over it goes over HTTP. */
  #moveElsewhere(): void {
    this.#refused = true;
    for (const { delivery, body } of this.#chunks) void this.#elsewhere(delivery).chunk(body);
    this.#chunks = [];
    for (const { delivery } of this.#unkept.streams()) this.#moveChunks(delivery);
    for (const delivery of this.#deliveries.values()) {
      if (delivery.progressToSend !== undefined) this.#elsewhere(delivery).progress(delivery.progressToSend);
      delivery.progressToSend = undefined;
    }
    for (const [name, result] of this.#results) if (!result.moved) this.#moveResult(name, result);
    this.#move();
  }

  /** Under their numbers: some of them may be kept already. */
  #moveChunks(delivery: FastDelivery): void {
    for (const { number, body } of this.#unkept.remove(delivery.name)) void this.#elsewhere(delivery).chunk(body, delivery.markOf(number));
  }

  #moveResult(name: string, result: SentResult): void {
    result.moved = true;
    if (result.body === undefined) return this.#keep(name, result.delivery);
    this.#moveChunks(result.delivery);
    void this.#elsewhere(result.delivery).finish(result.body, result.streamed)?.then(() => this.#acknowledged(name));
  }

  /** Over HTTP a job cannot go back. It was not begun, so it is run here after all, unless it came here anew. */
  #keep(name: string, delivery: FastDelivery): void {
    this.#elsewhere(delivery);
    this.#acknowledged(name);
    if (this.#consumer?.held().includes(delivery.job.id) === false) this.#consumer.deliver(delivery);
  }
}

function chunkLine(delivery: FastDelivery, { number, body }: UnkeptChunk): string {
  return delivery.numbered ? `S ${delivery.name}~${number} ${body}` : `S ${delivery.name} ${body}`;
}
