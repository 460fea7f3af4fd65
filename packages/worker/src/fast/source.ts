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
import { Outbox } from './outbox.ts';
import { upgrade } from './upgrade.ts';
import type { OpenedUpgrade, RefusedUpgrade } from './upgrade.ts';

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
  onRefused?(refusal: RefusedUpgrade): void;
}

/** After so many connections without a word something in between does not let the channel through. */
const MOST_MUTE = 3;
const CUT_OFF: RefusedUpgrade = {
  kind: 'refused',
  why: 'its connections break before the server says anything',
  lasting: false,
};

/** A connection, and what is known of it. */
interface Connection {
  channel: Channel;
  terms: OpenedUpgrade['terms'];
  /** What the server may still send; it follows the room that the consumer has. */
  credits: number;
  /** Since when a heartbeat is not answered. */
  unansweredSince: number;
  seemsDead: boolean;
  /** The server has said something. */
  heard: boolean;
  /** The server stops: no credits any more, and another connection as soon as the results are acknowledged. */
  serverStops: boolean;
}

/** Jobs over Berth's own channel: one connection, both ways, in batches. When it breaks, another one is opened, and what runs goes on. */
export class FastSource implements JobSource {
  readonly #parts: FastSourceParts;
  readonly #backoff: Backoff;
  readonly #outbox: Outbox;
  /** Ends the waiting for a connection. */
  readonly #enough = new AbortController();
  #consumer: Consumer | undefined;
  #connection: Connection | undefined;
  #connecting: Promise<void> = Promise.resolve();
  #onSettled: (() => void) | undefined;
  #leaving = false;
  /** So many connections in a row broke before the server said a word. */
  #mute = 0;

  constructor(parts: FastSourceParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(parts.pace);
    this.#outbox = new Outbox({
      elsewhere: (job) => parts.elsewhere(job),
      onStays: (delivery) => this.#runHere(delivery),
      onSettled: () => this.#settled(),
    });
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
    if (this.#connection?.terms.takesBack !== true) return;
    this.#connection.credits = 0;
    this.#connection.channel.send('N');
  }

  roomGrew(): void {
    this.#connection?.channel.wake();
  }

  leave(): Promise<void> {
    if (!this.#leaving) {
      this.#leaving = true;
      this.#connection?.channel.send('Q');
    }
    return Promise.resolve();
  }

  async close(): Promise<void> {
    const { pace, log } = this.#parts;
    let isLate = this.#outbox.settled;
    const late = isLate
      ? undefined
      : pause(pace.lastResult, this.#enough.signal).then(() => void (isLate = true));
    // With the last acknowledgement there may come jobs, which go back and are acknowledged too.
    while (!this.#outbox.settled && !isLate)
      await Promise.race([new Promise<void>((resolve) => (this.#onSettled = resolve)), late]);
    for (const jobId of this.#outbox.close())
      log.error('The result was given up: it was not acknowledged', jobId);
    this.#enough.abort();
    // Jobs may be on their way until the server has read Q. They arrive before it closes its side.
    this.#connection?.channel.end(pace.farewell);
    await this.#connecting;
  }

  /** The jobs whose results are not acknowledged. They are still in this worker's hands. */
  unacknowledged(): string[] {
    return this.#outbox.unacknowledged();
  }

  /** Resolves to false where there is no channel to tell it on. */
  async tellUnhealthy(check: string, reason: string): Promise<boolean> {
    const { address, apiKey, pace } = this.#parts;
    const outcome = await upgrade(address, apiKey, pace.unhealthyReport, this.#enough.signal);
    if (outcome.kind !== 'opened') return false;
    await new Promise<void>((resolve) => {
      const channel = new Channel(outcome.socket, outcome.head, {
        line: () => undefined,
        beforeWrite: () => undefined,
        drained: () => undefined,
        closed: () => resolve(),
      });
      channel.send(`U ${JSON.stringify({ check, reason })}`);
      channel.end(pace.unhealthyReport);
    });
    return true;
  }

  async reportUnhealthy(check: string, reason: string): Promise<void> {
    if (!(await this.tellUnhealthy(check, reason)))
      this.#parts.log.warn('The failed check could not be reported');
  }

  // The connection.

  async #stayConnected(): Promise<void> {
    const { address, apiKey, log, pace, onRefused } = this.#parts;
    const { signal } = this.#enough;
    while (!signal.aborted) {
      const outcome = await upgrade(address, apiKey, pace.upgrade, signal);
      if (outcome.kind === 'opened') await this.#use(outcome);
      const refusal = outcome.kind === 'refused' ? outcome : this.#mute >= MOST_MUTE ? CUT_OFF : undefined;
      if (signal.aborted) return;
      if (refusal !== undefined && onRefused !== undefined) {
        this.#mute = 0;
        this.#outbox.moveElsewhere();
        onRefused(refusal);
        return;
      }
      if (outcome.kind !== 'opened') log.warn(`There is no connection to the server: ${outcome.why}`);
      await pause(this.#backoff.next(), signal);
    }
  }

  /** Resolves when the connection is gone. */
  #use({ socket, head, terms }: OpenedUpgrade): Promise<void> {
    const { pace, log, pingMs } = this.#parts;
    return new Promise((resolve) => {
      const channel = new Channel(socket, head, {
        line: (line) => {
          connection.heard = true;
          this.#read(connection, line);
        },
        beforeWrite: () => {
          this.#outbox.beforeWrite(channel);
          this.#grantCredits(connection);
        },
        drained: () => this.#outbox.moveIfSpace(),
        closed: (unwritten, why) => {
          clearInterval(heartbeat);
          this.#connection = undefined;
          this.#outbox.disconnect(unwritten);
          const wasGood = Date.now() - channel.openedAt >= pace.goodConnection;
          if (wasGood) this.#backoff.reset();
          this.#mute = wasGood || connection.heard ? 0 : this.#mute + 1;
          if (!channel.ended)
            log.warn(`The connection to the server broke: ${why ?? 'the server closed it'}`);
          resolve();
        },
      });
      const connection: Connection = {
        channel,
        terms,
        credits: 0,
        unansweredSince: Infinity,
        seemsDead: false,
        heard: false,
        serverStops: false,
      };
      const heartbeat = setInterval(() => this.#beat(connection), pingMs);
      this.#connection = connection;
      this.#greet(connection);
    });
  }

  /** What a new connection begins with: what this worker has in hand, what was not sent or not acknowledged, and new credits. */
  #greet(connection: Connection): void {
    const { channel, terms } = connection;
    this.#parts.onOpen?.();
    this.#sendList(connection);
    this.#outbox.connect(channel, terms);
    if (this.#leaving) channel.send('Q');
  }

  #beat(connection: Connection): void {
    const { channel, seemsDead: seemedDead } = connection;
    const since = Math.min(this.#outbox.since, connection.unansweredSince);
    connection.seemsDead = Math.max(since, channel.heardAt) < Date.now() - this.#parts.pace.deadConnection;
    // Twice: after a handler that kept the whole process busy, what the server said may not be read yet.
    if (seemedDead && connection.seemsDead) channel.destroy();
    else this.#sendList(connection);
  }

  /** The heartbeat: what this worker has in hand. */
  #sendList(connection: Connection): void {
    connection.channel.send(
      `L ${[...new Set([...(this.#consumer?.held() ?? []), ...this.unacknowledged()])].join(',')}`,
    );
    if (connection.terms.answers)
      connection.unansweredSince = Math.min(connection.unansweredSince, Date.now());
  }

  #grantCredits(connection: Connection): void {
    const {
      channel,
      terms: { takesBack },
      credits,
      serverStops,
    } = connection;
    if (this.#leaving || serverStops || this.#consumer === undefined) return;
    const more = this.#consumer.room(takesBack) - credits;
    if (more <= 0 || (takesBack && more < this.#consumer.step())) return;
    connection.credits += more;
    channel.send(`T ${more} ${this.#consumer.concurrency}`);
  }

  #read(connection: Connection, line: string): void {
    switch (line.charCodeAt(0)) {
      case 0x4a: // J
        connection.credits = Math.max(0, connection.credits - 1);
        return this.#readJob(line);
      case 0x41: // A
        return this.#outbox.acknowledged(line.slice(2));
      case 0x4b: // K
        return this.#outbox.chunksKept(line.slice(2));
      case 0x48: // H
        connection.unansweredSince = Infinity;
        return;
      case 0x58: // X
        this.#consumer?.stop(line.slice(2));
        return;
      case 0x47: // G
        return this.#serverGoes(connection);
    }
  }

  #readJob(line: string): void {
    const leaseEnd = line.indexOf(' ', 2);
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
    const delivery = new FastDelivery(job, line.slice(2, leaseEnd), this.#outbox);
    if (this.#outbox.expect(delivery)) this.#consumer?.deliver(delivery);
  }

  #serverGoes(connection: Connection): void {
    const { channel } = connection;
    this.#parts.log.info('The server stops; this worker looks for another, or for its return.');
    connection.serverStops = true;
    const { farewell } = this.#parts.pace;
    if (this.#outbox.settled) channel.end(farewell);
    else setTimeout(() => channel.end(farewell), farewell);
  }

  #settled(): void {
    this.#onSettled?.();
    if (this.#connection?.serverStops === true) this.#connection.channel.end(this.#parts.pace.farewell);
  }

  /** A job that could not go back, unless it came here anew. */
  #runHere(delivery: FastDelivery): void {
    if (this.#consumer?.held().includes(delivery.job.id) === false) this.#consumer.deliver(delivery);
  }
}
