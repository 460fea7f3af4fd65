import { AutoSource } from './auto-source.ts';
import { Bench } from './bench.ts';
import { askConcurrency, followConcurrency } from './concurrency.ts';
import type { Ending } from './ending.ts';
import { readEnvironment } from './environment.ts';
import { runChecks, UnhealthyError } from './fitness.ts';
import type { Handler } from './handler.ts';
import type { JobSource } from './job-source.ts';
import { Log } from './log.ts';
import type { Options } from './options.ts';
import { NORMAL_PACE } from './pace.ts';
import type { Pace } from './pace.ts';
import { pause } from './pause.ts';
import { Pulse } from './pulse.ts';
import { PublicSource } from './public/source.ts';
import { VERSION } from './version.ts';

/** What runs comes first; no server reads an address of any length. */
const MOST_PINGED = 300;

/** What a test may want otherwise. */
export interface ShiftParts {
  pace?: Pace;
  /** Where lines of the log go. Default: standard output. */
  write?: (line: string) => void;
  /** A second thread that pings while this one is busy. Default: true. */
  pulse?: boolean;
}

/**
 * A worker from its first check to its last acknowledgement. It takes jobs until it is stopped or
 * a job asks for a new worker; then it finishes what it has, and is done.
 */
export class Shift implements Ending {
  readonly #options: Options;
  readonly #pace: Pace;
  readonly #log: Log;
  readonly #source: JobSource;
  readonly #bench: Bench;
  readonly #pulse: Pulse | undefined;
  readonly #over = new AbortController();
  #opened = false;
  #stopping = false;
  readonly #stopAsked: Promise<void>;
  #askToStop: () => void = () => undefined;
  #refreshed = false;
  readonly done: Promise<void>;

  constructor(
    handler: Handler,
    options: Options,
    { pace = NORMAL_PACE, write, pulse = true }: ShiftParts = {},
  ) {
    const variables = options.env ?? process.env;
    const { addresses, apiKey, pingMs, ...identity } = readEnvironment(variables);
    const { concurrency = 1, prefetch = 0, aggregate = false, refreshWorker = false } = options;
    this.#options = options;
    this.#pace = pace;
    this.#log = new Log(variables, write);
    const parts = { addresses, apiKey, pingMs, log: this.#log, pace };
    const publicSource = new PublicSource(parts);
    const address = addresses.channel;
    if (options.channel === 'fast' && address === undefined)
      throw new Error(
        "channel: 'fast' needs an address of jobs with /job-take/ in RUNPOD_WEBHOOK_GET_JOB, from which that of the channel is made; leave the option out to take jobs over HTTP",
      );
    this.#source =
      options.channel === 'public' || address === undefined
        ? publicSource
        : new AutoSource({ ...parts, address, publicSource, fastOnly: options.channel === 'fast' });
    this.#bench = new Bench({
      handler,
      terms: { aggregate, refreshWorker, identity },
      concurrency: typeof concurrency === 'number' ? concurrency : 1,
      prefetch,
      windUpMs: pace.windUp,
      log: this.#log,
      onRoom: () => this.#source.roomGrew(),
      onLessRoom: () => this.#source.roomShrank?.(),
      onChange: () => this.#pulse?.changed(),
      onRefresh: () => {
        this.#refreshed = true;
        this.#stop();
      },
    });
    this.#pulse =
      !pulse || addresses.ping([]) === undefined
        ? undefined
        : new Pulse({
            apiKey,
            pingMs,
            log: this.#log,
            address: () => addresses.ping(this.#held(), MOST_PINGED),
          });
    this.#stopAsked = new Promise((resolve) => (this.#askToStop = resolve));
    this.#log.info(`Worker ${identity.workerId} starts, berth-worker ${VERSION}.`);
    this.done = this.#work();
  }

  /** A job asked for a new worker, so this one ends by itself. */
  get endsProcess(): boolean {
    return this.#refreshed;
  }

  /** Takes no more jobs. Resolves when the last result is acknowledged. */
  async stop(): Promise<void> {
    this.#stop();
    await this.done;
  }

  /** Aborts what runs, without results. */
  abort(): void {
    this.#stop();
    this.#bench.stopAll();
  }

  #stop(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#log.info('The worker stops. It takes no more jobs and finishes those that it has.');
    this.#bench.closeDoor();
    this.#askToStop();
  }

  async #work(): Promise<void> {
    try {
      await Promise.race([this.#prepare(), this.#stopAsked]);
    } catch (error) {
      if (error instanceof UnhealthyError) await this.#reportUnhealthy(error);
      await this.#pulse?.stop();
      throw error;
    }
    if (!this.#stopping) this.#open();
    await this.#stopAsked;
    await this.#drain();
  }

  async #prepare(): Promise<void> {
    const { fitness = [], concurrency } = this.#options;
    await runChecks(fitness);
    if (typeof concurrency === 'function') await askConcurrency(concurrency, this.#bench, this.#log);
  }

  #open(): void {
    this.#opened = true;
    this.#pulse?.begin();
    const { concurrency } = this.#options;
    if (typeof concurrency === 'function')
      void followConcurrency(concurrency, this.#bench, this.#pace.concurrency, this.#log, this.#over.signal);
    this.#source.open(this.#bench);
  }

  /** What this worker has in hand, with the jobs whose results are still under way. */
  #held(): string[] {
    return [...new Set([...this.#bench.held(), ...(this.#source.unacknowledged?.() ?? [])])];
  }

  async #drain(): Promise<void> {
    if (this.#opened) {
      await this.#source.leave();
      do {
        await this.#bench.whenIdle();
        await this.#source.close();
      } while (!this.#bench.idle);
    }
    this.#over.abort();
    await this.#pulse?.stop();
    this.#log.info('The worker has stopped.');
  }

  async #reportUnhealthy({ message, check, reason }: UnhealthyError): Promise<void> {
    this.#log.error(`This worker is unhealthy: ${message}`);
    await Promise.race([
      this.#source.reportUnhealthy(check, reason),
      pause(this.#pace.unhealthyReport, this.#over.signal),
    ]);
    this.#over.abort();
  }
}
