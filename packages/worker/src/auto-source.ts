import { ChannelSource } from './channel/channel-source.ts';
import type { ChannelSourceOptions } from './channel/channel-source.ts';
import type { JobConsumer, JobSource } from './job-source.ts';
import type { HttpSource } from './http/http-source.ts';

interface AutoJobSourceOptions extends Omit<ChannelSourceOptions, 'httpFallback' | 'onOpen' | 'onRefused'> {
  httpSource: HttpSource;
  /** Take jobs over the channel only. */
  channelOnly: boolean;
}

/**
 * Uses the channel where the server offers it, else the public protocol. Both stay open for results: a job's
 * result goes back the way that still works.
 */
export class AutoJobSource implements JobSource {
  readonly #options: AutoJobSourceOptions;
  readonly #http: HttpSource;
  readonly #channel: ChannelSource;
  #consumer: JobConsumer | undefined;
  #usesHttp = false;
  #wasOpen = false;
  #tryingAgain: NodeJS.Timeout | undefined;

  constructor(options: AutoJobSourceOptions) {
    this.#options = options;
    this.#http = options.httpSource;
    this.#channel = new ChannelSource({
      ...options,
      httpFallback: (job) => this.#http.jobOverHttp(job),
      onOpen: () => this.#useChannel(),
      ...(options.channelOnly
        ? {}
        : { onUpgradeRefused: ({ why, permanent }) => this.#useHttp(why, permanent) }),
    });
  }

  start(consumer: JobConsumer): void {
    this.#consumer = {
      get concurrency() {
        return consumer.concurrency;
      },
      capacity: () => consumer.capacity(),
      minBatch: () => 1,
      deliver: (delivery) => consumer.deliver(delivery),
      abortJob: (jobId) => consumer.abortJob(jobId),
      jobIds: () => [...new Set([...consumer.jobIds(), ...this.unacknowledgedJobIds()])],
    };
    this.#channel.start(consumer);
  }

  capacityShrank(): void {
    this.#channel.capacityShrank();
    this.#http.capacityShrank();
  }

  capacityGrew(): void {
    this.#channel.capacityGrew();
    this.#http.capacityGrew();
  }

  unacknowledgedJobIds(): string[] {
    return this.#channel.unacknowledgedJobIds();
  }

  async stopTaking(): Promise<void> {
    await Promise.all([this.#channel.stopTaking(), this.#http.stopTaking()]);
  }

  async close(): Promise<void> {
    await this.#channel.close();
    clearTimeout(this.#tryingAgain);
    await this.#http.close();
  }

  async reportUnhealthy(check: string, reason: string): Promise<void> {
    if (!(await this.#channel.sendUnhealthy(check, reason))) await this.#http.reportUnhealthy(check, reason);
  }

  #useChannel(): void {
    this.#wasOpen = true;
    if (!this.#usesHttp) return;
    this.#usesHttp = false;
    this.#options.log.info('The server offers its channel again; jobs come over it from now on.');
    void this.#http.suspend();
  }

  /** Also runs while the worker drains: its running jobs are still pinged for and can still be cancelled. */
  #useHttp(why: string, lasting: boolean): void {
    if (!this.#usesHttp && this.#consumer !== undefined) {
      this.#usesHttp = true;
      this.#options.log.info(
        `The server does not offer its channel (${why}); jobs come by the public protocol.`,
      );
      this.#http.start(this.#consumer);
    }
    if (lasting && !this.#wasOpen) return;
    this.#tryingAgain = setTimeout(
      () => this.#channel.reconnect(),
      this.#options.timings.upgradeRetryDelay * (0.5 + Math.random() / 2),
    );
  }
}
