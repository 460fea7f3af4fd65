import { setTimeout as pause } from 'node:timers/promises';
import { BucketError } from './volume-bucket.ts';

const MAX_ATTEMPTS = 4;
const RETRY_DELAY_MS = 500;

/** Retries after a connection error or a busy server; other errors are final. */
export async function withRetries<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries === MAX_ATTEMPTS || (error instanceof BucketError && error.status < 500)) throw error;
      await pause(RETRY_DELAY_MS * 2 ** (tries - 1));
    }
  }
}

/** Runs several at a time. After an error nothing new is started, and running ones are waited for. */
export async function forEachConcurrent<T>(
  items: Iterable<T> | AsyncIterable<T>,
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let failed = false;
  const next = serialized(async () => (failed ? { done: true as const, value: undefined } : source.next()));
  const workers = Array.from({ length: width }, async () => {
    for (let item = await next(); item.done !== true; item = await next()) {
      try {
        await work(item.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  });
  const outcomes = await Promise.allSettled(workers);
  const failure = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}

/** Runs one at a time. */
function serialized<T>(work: () => Promise<T>): () => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
}
