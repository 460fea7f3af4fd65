/**
 * How jobs and results are transported: the public protocol over HTTP, Berth's own channel, or the channel
 * where the server offers it.
 */
export type ChannelChoice = 'auto' | 'public' | 'fast';

/** Fails by throwing. */
export type FitnessCheck = () => unknown;

export interface Options {
  /**
   * How many jobs run at a time: a number, or a function that is called once a second with the current
   * number. Default: 1.
   */
  concurrency?: number | ((current: number) => number | Promise<number>);
  /** How many more jobs are prefetched, so that the next one is here when one ends. Default: 0. */
  prefetch?: number;
  /** The output of a generator is the list of what it yielded, instead of an empty list. Default: false. */
  aggregate?: boolean;
  /** The worker asks to be replaced after its first job, and exits. Default: false. */
  refreshWorker?: boolean;
  /**
   * Run once before the first job. If one throws, the worker is reported unhealthy and the process exits with
   * code 1.
   */
  fitness?: readonly FitnessCheck[];
  channel?: ChannelChoice;
  /**
   * SIGTERM and SIGINT stop the worker and end the process with it, as does a worker that ends by itself.
   * False: the caller handles both. Default: true.
   */
  signals?: boolean;
  /** The environment that holds the addresses and the key. Default: process.env. */
  env?: Readonly<Record<string, string | undefined>>;
}

export function validateOptions({ concurrency, prefetch, channel }: Options): void {
  if (typeof concurrency === 'number' && (!Number.isInteger(concurrency) || concurrency < 1))
    throw new RangeError(`concurrency is ${concurrency}; it is a whole number from 1`);
  if (prefetch !== undefined && (!Number.isInteger(prefetch) || prefetch < 0))
    throw new RangeError(`prefetch is ${prefetch}; it is a whole number from 0`);
  if (channel !== undefined && !['auto', 'public', 'fast'].includes(channel))
    throw new RangeError(`channel is "${String(channel)}"; it is auto, public or fast`);
}
