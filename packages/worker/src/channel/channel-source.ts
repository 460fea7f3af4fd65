import { errorMessage } from '../error-report.ts';
import type { Job } from '../handler.ts';
import type { JobConsumer, TakenJob, JobSource } from '../job-source.ts';
import type { WorkerLog } from '../worker-log.ts';
import { Backoff } from '../timings.ts';
import type { Timings } from '../timings.ts';
import { delay } from '../delay.ts';
import { isJob } from '../http/take-loop.ts';
import { ChannelConnection } from './channel-connection.ts';
import { ChannelJob } from './channel-job.ts';
import { ChannelOutbox } from './channel-outbox.ts';
import { requestUpgrade } from './channel-upgrade.ts';
import type { OpenedUpgrade, RefusedUpgrade } from './channel-upgrade.ts';

export interface ChannelSourceOptions {
  url: string;
  apiKey: string;
  pingMs: number;
  log: WorkerLog;
  timings: Timings;
  /** Creates the HTTP delivery for a job that came over the channel. */
  httpFallback(job: Job): TakenJob;
  /** The channel is open. */
  onOpen?(): void;
  /** The server does not offer the channel. Without this callback, connecting is retried forever. */
  onUpgradeRefused?(refusal: RefusedUpgrade): void;
}

/** After this many connections on which the server sent nothing, something in between blocks the channel. */
const MAX_SILENT_CONNECTIONS = 3;
const CONNECTIONS_CUT: RefusedUpgrade = {
  kind: 'refused',
  why: 'its connections break before the server says anything',
  permanent: false,
};

/** A connection and its state. */
interface ConnectionState {
  channel: ChannelConnection;
  features: OpenedUpgrade['features'];
  /** How many more jobs the server may send; follows the free room of the consumer. */
  credits: number;
  /** Since when a heartbeat is unanswered. */
  unansweredSince: number;
  seemsDead: boolean;
  /** The server has sent something. */
  receivedData: boolean;
  /** The server is stopping: grant no more credits, and reconnect as soon as the results are acknowledged. */
  serverDraining: boolean;
}

/**
 * Takes jobs over Berth's own channel: one bidirectional connection with batched lines. When it breaks, a new
 * one is opened and running jobs continue.
 */
export class ChannelSource implements JobSource {
  readonly #options: ChannelSourceOptions;
  readonly #backoff: Backoff;
  readonly #outbox: ChannelOutbox;
  /** Ends the wait for a connection. */
  readonly #enough = new AbortController();
  #consumer: JobConsumer | undefined;
  #connection: ConnectionState | undefined;
  #connecting: Promise<void> = Promise.resolve();
  #onAllAcknowledged: (() => void) | undefined;
  #closing = false;
  /** How many connections in a row broke before the server sent anything. */
  #mute = 0;

  constructor(options: ChannelSourceOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.timings);
    this.#outbox = new ChannelOutbox({
      httpFallback: (job) => options.httpFallback(job),
      onReturnFailed: (delivery) => this.#runLocally(delivery),
      onAllAcknowledged: () => this.#allAcknowledged(),
    });
  }

  start(consumer: JobConsumer): void {
    this.#consumer = consumer;
    this.reconnect();
  }

  /** Tries to connect again after a refusal. */
  reconnect(): void {
    this.#connecting = this.#stayConnected();
  }

  capacityShrank(): void {
    if (this.#connection?.features.acceptsReturns !== true) return;
    this.#connection.credits = 0;
    this.#connection.channel.send('N');
  }

  capacityGrew(): void {
    this.#connection?.channel.scheduleWrite();
  }

  stopTaking(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      this.#connection?.channel.send('Q');
    }
    return Promise.resolve();
  }

  async close(): Promise<void> {
    const { timings, log } = this.#options;
    let isLate = this.#outbox.allAcknowledged;
    const late = isLate
      ? undefined
      : delay(timings.finalResultDeadline, this.#enough.signal).then(() => void (isLate = true));
    // Jobs may arrive together with the last acknowledgement; they are returned and acknowledged too.
    while (!this.#outbox.allAcknowledged && !isLate)
      await Promise.race([new Promise<void>((resolve) => (this.#onAllAcknowledged = resolve)), late]);
    for (const jobId of this.#outbox.close())
      log.error('The result was given up: it was not acknowledged', jobId);
    this.#enough.abort();
    // Jobs may be in flight until the server has read Q. They arrive before it closes its side.
    this.#connection?.channel.end(timings.closeTimeout);
    await this.#connecting;
  }

  /** Jobs whose results are not acknowledged. This worker still holds them. */
  unacknowledgedJobIds(): string[] {
    return this.#outbox.unacknowledgedJobIds();
  }

  /** Resolves to false where there is no channel to report on. */
  async sendUnhealthy(check: string, reason: string): Promise<boolean> {
    const { url, apiKey, timings } = this.#options;
    const outcome = await requestUpgrade(url, apiKey, timings.unhealthyReportTimeout, this.#enough.signal);
    if (outcome.kind !== 'opened') return false;
    await new Promise<void>((resolve) => {
      const channel = new ChannelConnection(outcome.socket, outcome.head, {
        line: () => undefined,
        beforeWrite: () => undefined,
        drained: () => undefined,
        closed: () => resolve(),
      });
      channel.send(`U ${JSON.stringify({ check, reason })}`);
      channel.end(timings.unhealthyReportTimeout);
    });
    return true;
  }

  async reportUnhealthy(check: string, reason: string): Promise<void> {
    if (!(await this.sendUnhealthy(check, reason)))
      this.#options.log.warn('The failed check could not be reported');
  }

  // The connection.

  async #stayConnected(): Promise<void> {
    const { url, apiKey, log, timings, onUpgradeRefused } = this.#options;
    const { signal } = this.#enough;
    while (!signal.aborted) {
      const outcome = await requestUpgrade(url, apiKey, timings.upgradeTimeout, signal);
      if (outcome.kind === 'opened') await this.#use(outcome);
      const refusal =
        outcome.kind === 'refused'
          ? outcome
          : this.#mute >= MAX_SILENT_CONNECTIONS
            ? CONNECTIONS_CUT
            : undefined;
      if (signal.aborted) return;
      if (refusal !== undefined && onUpgradeRefused !== undefined) {
        this.#mute = 0;
        this.#outbox.moveToHttp();
        onUpgradeRefused(refusal);
        return;
      }
      if (outcome.kind !== 'opened') log.warn(`There is no connection to the server: ${outcome.why}`);
      await delay(this.#backoff.next(), signal);
    }
  }

  /** Resolves when the connection is closed. */
  #use({ socket, head, features }: OpenedUpgrade): Promise<void> {
    const { timings, log, pingMs } = this.#options;
    return new Promise((resolve) => {
      const channel = new ChannelConnection(socket, head, {
        line: (line) => {
          connection.receivedData = true;
          this.#read(connection, line);
        },
        beforeWrite: () => {
          this.#outbox.beforeWrite(channel);
          this.#grantCredits(connection);
        },
        drained: () => this.#outbox.resumeWriters(),
        closed: (unwritten, why) => {
          clearInterval(heartbeat);
          this.#connection = undefined;
          this.#outbox.disconnect(unwritten);
          const wasGood = Date.now() - channel.openedAt >= timings.stableConnectionAge;
          if (wasGood) this.#backoff.reset();
          this.#mute = wasGood || connection.receivedData ? 0 : this.#mute + 1;
          if (!channel.ended)
            log.warn(`The connection to the server broke: ${why ?? 'the server closed it'}`);
          resolve();
        },
      });
      const connection: ConnectionState = {
        channel,
        features,
        credits: 0,
        unansweredSince: Infinity,
        seemsDead: false,
        receivedData: false,
        serverDraining: false,
      };
      const heartbeat = setInterval(() => this.#beat(connection), pingMs);
      this.#connection = connection;
      this.#sendHello(connection);
    });
  }

  /**
   * Starts a new connection: sends the jobs that this worker holds, everything unsent or unacknowledged, and
   * new credits.
   */
  #sendHello(connection: ConnectionState): void {
    const { channel, features } = connection;
    this.#options.onOpen?.();
    this.#sendList(connection);
    this.#outbox.connect(channel, features);
    if (this.#closing) channel.send('Q');
  }

  #beat(connection: ConnectionState): void {
    const { channel, seemsDead: seemedDead } = connection;
    const since = Math.min(this.#outbox.oldestUnacknowledgedAt, connection.unansweredSince);
    connection.seemsDead =
      Math.max(since, channel.lastReceivedAt) < Date.now() - this.#options.timings.deadConnectionTimeout;
    // Checked twice: after a handler that blocked the event loop, data from the server may not be read yet.
    if (seemedDead && connection.seemsDead) channel.destroy();
    else this.#sendList(connection);
  }

  /** The heartbeat: lists the jobs that this worker holds. */
  #sendList(connection: ConnectionState): void {
    connection.channel.send(
      `L ${[...new Set([...(this.#consumer?.jobIds() ?? []), ...this.unacknowledgedJobIds()])].join(',')}`,
    );
    if (connection.features.answersHeartbeats)
      connection.unansweredSince = Math.min(connection.unansweredSince, Date.now());
  }

  #grantCredits(connection: ConnectionState): void {
    const {
      channel,
      features: { acceptsReturns },
      credits,
      serverDraining,
    } = connection;
    if (this.#closing || serverDraining || this.#consumer === undefined) return;
    const more = this.#consumer.capacity(acceptsReturns) - credits;
    if (more <= 0 || (acceptsReturns && more < this.#consumer.minBatch())) return;
    connection.credits += more;
    channel.send(`T ${more} ${this.#consumer.concurrency}`);
  }

  #read(connection: ConnectionState, line: string): void {
    switch (line.charCodeAt(0)) {
      case 0x4a: // J
        connection.credits = Math.max(0, connection.credits - 1);
        return this.#readJob(line);
      case 0x41: // A
        return this.#outbox.onAcknowledged(line.slice(2));
      case 0x4b: // K
        return this.#outbox.onChunksAcknowledged(line.slice(2));
      case 0x48: // H
        connection.unansweredSince = Infinity;
        return;
      case 0x58: // X
        this.#consumer?.abortJob(line.slice(2));
        return;
      case 0x47: // G
        return this.#handleGoAway(connection);
    }
  }

  #readJob(line: string): void {
    const leaseEnd = line.indexOf(' ', 2);
    let job: unknown;
    try {
      job = JSON.parse(line.slice(leaseEnd + 1));
    } catch (error) {
      this.#options.log.error(`The server sent a job that is not JSON: ${errorMessage(error)}`);
      return;
    }
    if (!isJob(job)) {
      this.#options.log.error('The server sent a job without an id that is text; it is left out.');
      return;
    }
    const delivery = new ChannelJob(job, line.slice(2, leaseEnd), this.#outbox);
    if (this.#outbox.register(delivery)) this.#consumer?.deliver(delivery);
  }

  #handleGoAway(connection: ConnectionState): void {
    const { channel } = connection;
    this.#options.log.info('The server stops; this worker looks for another, or for its return.');
    connection.serverDraining = true;
    const { closeTimeout } = this.#options.timings;
    if (this.#outbox.allAcknowledged) channel.end(closeTimeout);
    else setTimeout(() => channel.end(closeTimeout), closeTimeout);
  }

  #allAcknowledged(): void {
    this.#onAllAcknowledged?.();
    if (this.#connection?.serverDraining === true)
      this.#connection.channel.end(this.#options.timings.closeTimeout);
  }

  /** Runs a job that could not be returned, unless it was delivered again. */
  #runLocally(delivery: ChannelJob): void {
    if (this.#consumer?.jobIds().includes(delivery.job.id) === false) this.#consumer.deliver(delivery);
  }
}
