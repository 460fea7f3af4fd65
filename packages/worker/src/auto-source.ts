import { FastSource } from './fast/source.ts';
import type { FastSourceParts } from './fast/source.ts';
import type { Consumer, JobSource } from './job-source.ts';
import type { PublicSource } from './public/source.ts';

interface AutoSourceParts extends Omit<FastSourceParts, 'elsewhere' | 'onOpen' | 'onRefused'> {
  publicSource: PublicSource;
  /** Take jobs over the channel only. */
  fastOnly: boolean;
}

/** The channel where the server offers it, else the public protocol. Both ways back stay open: a job ends where it can. */
export class AutoSource implements JobSource {
  readonly #parts: AutoSourceParts;
  readonly #public: PublicSource;
  readonly #fast: FastSource;
  #consumer: Consumer | undefined;
  #onPublic = false;
  #wasOpen = false;
  #tryingAgain: NodeJS.Timeout | undefined;

  constructor(parts: AutoSourceParts) {
    this.#parts = parts;
    this.#public = parts.publicSource;
    this.#fast = new FastSource({
      ...parts,
      elsewhere: (job) => this.#public.deliveryOf(job),
      onOpen: () => this.#useFast(),
      ...(parts.fastOnly ? {} : { onRefused: ({ why, lasting }) => this.#usePublic(why, lasting) }),
    });
  }

  open(consumer: Consumer): void {
    this.#consumer = {
      get concurrency() {
        return consumer.concurrency;
      },
      room: () => consumer.room(),
      step: () => 1,
      deliver: (delivery) => consumer.deliver(delivery),
      stop: (jobId) => consumer.stop(jobId),
      held: () => [...new Set([...consumer.held(), ...this.unacknowledged()])],
    };
    this.#fast.open(consumer);
  }

  roomShrank(): void {
    this.#fast.roomShrank();
    this.#public.roomShrank();
  }

  roomGrew(): void {
    this.#fast.roomGrew();
    this.#public.roomGrew();
  }

  unacknowledged(): string[] {
    return this.#fast.unacknowledged();
  }

  async leave(): Promise<void> {
    await Promise.all([this.#fast.leave(), this.#public.leave()]);
  }

  async close(): Promise<void> {
    await this.#fast.close();
    clearTimeout(this.#tryingAgain);
    await this.#public.close();
  }

  async reportUnhealthy(check: string, reason: string): Promise<void> {
    if (!(await this.#fast.tellUnhealthy(check, reason))) await this.#public.reportUnhealthy(check, reason);
  }

  #useFast(): void {
    this.#wasOpen = true;
    if (!this.#onPublic) return;
    this.#onPublic = false;
    this.#parts.log.info('The server offers its channel again; jobs come over it from now on.');
    void this.#public.rest();
  }

  /** Also while the worker leaves: what it still runs is pinged for, and can be stopped. */
  #usePublic(why: string, lasting: boolean): void {
    if (!this.#onPublic && this.#consumer !== undefined) {
      this.#onPublic = true;
      this.#parts.log.info(
        `The server does not offer its channel (${why}); jobs come by the public protocol.`,
      );
      this.#public.open(this.#consumer);
    }
    if (lasting && !this.#wasOpen) return;
    this.#tryingAgain = setTimeout(
      () => this.#fast.tryAgain(),
      this.#parts.pace.upgradeAgain * (0.5 + Math.random() / 2),
    );
  }
}
