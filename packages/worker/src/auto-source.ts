import { ChannelSource } from './channel/channel-source.ts';
import type { ChannelSourceOptions } from './channel/channel-source.ts';
import type { JobConsumer, JobSource } from './job-source.ts';
import type { HttpSource } from './http/http-source.ts';

interface AutoJobSourceOptions extends Omit<ChannelSourceOptions, 'httpFallback' | 'onOpen' | 'onRefused'> {
  httpSource: HttpSource;
  /** Take jobs over the channel only. */
  channelOnly: boolean;
}

/** The channel where the server offers it, else the public protocol. Both ways back stay open: a job ends where it can. */
export class AutoJobSource implements JobSource {
  readonly #parts: AutoJobSourceOptions;
  readonly #public: HttpSource;
  readonly #fast: ChannelSource;
  #consumer: JobConsumer | undefined;
  #onPublic = false;
  #wasOpen = false;
  #tryingAgain: NodeJS.Timeout | undefined;

  constructor(parts: AutoJobSourceOptions) {
    this.#parts = parts;
    this.#public = parts.httpSource;
    this.#fast = new ChannelSource({
      ...parts,
      httpFallback: (job) => this.#public.jobOverHttp(job),
      onOpen: () => this.#useFast(),
      ...(parts.channelOnly
        ? {}
        : { onUpgradeRefused: ({ why, permanent }) => this.#usePublic(why, permanent) }),
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
    this.#fast.start(consumer);
  }

  capacityShrank(): void {
    this.#fast.capacityShrank();
    this.#public.capacityShrank();
  }

  capacityGrew(): void {
    this.#fast.capacityGrew();
    this.#public.capacityGrew();
  }

  unacknowledgedJobIds(): string[] {
    return this.#fast.unacknowledgedJobIds();
  }

  async stopTaking(): Promise<void> {
    await Promise.all([this.#fast.stopTaking(), this.#public.stopTaking()]);
  }

  async close(): Promise<void> {
    await this.#fast.close();
    clearTimeout(this.#tryingAgain);
    await this.#public.close();
  }

  async reportUnhealthy(check: string, reason: string): Promise<void> {
    if (!(await this.#fast.sendUnhealthy(check, reason))) await this.#public.reportUnhealthy(check, reason);
  }

  #useFast(): void {
    this.#wasOpen = true;
    if (!this.#onPublic) return;
    this.#onPublic = false;
    this.#parts.log.info('The server offers its channel again; jobs come over it from now on.');
    void this.#public.suspend();
  }

  /** Also while the worker leaves: what it still runs is pinged for, and can be stopped. */
  #usePublic(why: string, lasting: boolean): void {
    if (!this.#onPublic && this.#consumer !== undefined) {
      this.#onPublic = true;
      this.#parts.log.info(
        `The server does not offer its channel (${why}); jobs come by the public protocol.`,
      );
      this.#public.start(this.#consumer);
    }
    if (lasting && !this.#wasOpen) return;
    this.#tryingAgain = setTimeout(
      () => this.#fast.reconnect(),
      this.#parts.timings.upgradeRetryDelay * (0.5 + Math.random() / 2),
    );
  }
}
