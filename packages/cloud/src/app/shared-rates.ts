import type { WakeupBus } from '../store/wakeup-bus.ts';
import type { RateShare } from '../support/rate-limiter.ts';

/**
 * Requests counted within this time are reported to the other servers together. A burst within it may exceed
 * a limit by what one server allows in that time.
 */
const FLUSH_MS = 20;

/** Lets the servers of one database count together what a limit holds for: requests, queued jobs or bytes. */
export function sharedRates(limit: string, wakeups: WakeupBus): RateShare {
  let waiting = new Map<string, number>();
  let isScheduled = false;
  const flush = (): void => {
    isScheduled = false;
    const counted = waiting;
    waiting = new Map();
    for (const [key, used] of counted) wakeups.publish({ kind: 'rate', limit, key, used });
  };
  return {
    publish: (key, amount = 1) => {
      waiting.set(key, (waiting.get(key) ?? 0) + amount);
      if (isScheduled) return;
      isScheduled = true;
      setTimeout(flush, FLUSH_MS).unref();
    },
    subscribe: (add) =>
      wakeups.subscribe((wakeup) => {
        if (wakeup.kind === 'rate' && wakeup.limit === limit) add(wakeup.key, wakeup.used);
      }),
  };
}
