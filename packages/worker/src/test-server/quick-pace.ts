import { NORMAL_PACE } from '../pace.ts';
import type { Pace } from '../pace.ts';

/** The normal pace with short pauses after failures, for tests that are about something else than the pauses. */
export const QUICK_PACE: Pace = {
  ...NORMAL_PACE,
  firstRetry: 10,
  longestRetry: 50,
  tooMany: 50,
  emptyAnswer: 20,
  concurrency: 10,
  windUp: 20,
  upgradeAgain: 20,
};
