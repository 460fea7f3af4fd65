import { DEFAULT_TIMINGS } from '../../../worker/src/timings.ts';
import type { Timings } from '../../../worker/src/timings.ts';

/**
 * The normal pace with short pauses after failures, for tests that are about something else than the pauses.
 */
export const SHORT_TIMINGS: Timings = {
  ...DEFAULT_TIMINGS,
  minBackoff: 10,
  maxBackoff: 50,
  rateLimitDelay: 50,
  emptyPollDelay: 20,
  concurrencyInterval: 10,
  abortGrace: 20,
  upgradeRetryDelay: 20,
};
