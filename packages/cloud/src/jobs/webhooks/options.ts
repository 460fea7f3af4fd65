import type { Config } from '../../support/config/config.ts';
import type { SeriesRules } from './delivery.ts';
import type { ReceiverLimits } from './receivers.ts';

export interface SenderOptions extends SeriesRules, ReceiverLimits {
  allowPrivate: boolean;
  /** Milliseconds until an attempt without an answer has failed. */
  timeout: number;
  /** Milliseconds between two looks for what other servers left behind. */
  lookEvery: number;
  /** Milliseconds that a delivery stays in the log after its end. */
  keepLog: number;
  /** Milliseconds that attempts under way get to end when the sender closes. */
  closeGrace: number;
}

const MEGABYTE = 1024 * 1024;
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** What the operator says, and what does not need saying. */
export function senderOptions({
  allowPrivate,
  attempts,
  pause,
  timeout,
  keepLog,
}: Config['webhooks']): SenderOptions {
  return {
    allowPrivate,
    attempts,
    pause: pause * SECOND,
    timeout: timeout * SECOND,
    together: 64,
    perHost: 8,
    bytes: 128 * MEGABYTE,
    parked: 10_000,
    lookEvery: 15 * SECOND,
    keepLog: keepLog * HOUR,
    closeGrace: 2 * SECOND,
  };
}
