import { DAY_MS } from '../../domain/limits.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import type { Images } from './images.ts';

const CHECK_INTERVAL_MS = 3_600_000;

export interface ImageExpiryDeps {
  images: Pick<Images, 'expire' | 'pruneFetched'>;
  clock: Clock;
  log: Log;
  /** 0: nothing expires. */
  keepDays: number;
}

/**
 * Deletes deployed folders, container images and Python environments that nothing names and nothing has used
 * for long. Every server does so, for those on its machine.
 */
export class ImageExpiry {
  readonly #deps: ImageExpiryDeps;
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> = Promise.resolve();

  constructor(deps: ImageExpiryDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#deps.keepDays === 0) return;
    this.#timer = setInterval(() => (this.#checking = this.check()), CHECK_INTERVAL_MS).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#checking;
  }

  async check(): Promise<void> {
    const { images, clock, log, keepDays } = this.#deps;
    const before = clock.now() - keepDays * DAY_MS;
    try {
      const removed = [...(await images.expire(before)), ...(await images.pruneFetched(before))];
      if (removed.length > 0) log.info({ images: removed, keepDays }, 'unused images were deleted');
    } catch (error) {
      log.warn({ err: error }, 'unused images could not be deleted; the next attempt is in an hour');
    }
  }
}
