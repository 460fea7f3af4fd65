import type { Config } from '../../support/config/config.ts';
import type { RetryPolicy } from './webhook-delivery.ts';
import type { ReceiverLimits } from './receiver-queue.ts';

export interface WebhookSenderOptions extends RetryPolicy, ReceiverLimits {
  allowPrivate: boolean;
  /** Timeout of an attempt, in milliseconds. */
  timeout: number;
  /** Milliseconds between checks for deliveries that other servers abandoned. */
  pollInterval: number;
  /** Milliseconds that a delivery stays in the log after its end. */
  keepLog: number;
  /** Milliseconds that attempts in progress get to end when the sender closes. */
  closeGrace: number;
}

const MEGABYTE = 1024 * 1024;
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** The operator's settings, with defaults. */
export function webhookSenderOptions({
  allowPrivate,
  attempts,
  pause,
  timeout,
  keepLog,
}: Config['webhooks']): WebhookSenderOptions {
  return {
    allowPrivate,
    attempts,
    pause: pause * SECOND,
    timeout: timeout * SECOND,
    maxConcurrent: 64,
    maxPerHost: 8,
    maxBytes: 128 * MEGABYTE,
    maxQueued: 10_000,
    pollInterval: 15 * SECOND,
    keepLog: keepLog * HOUR,
    closeGrace: 2 * SECOND,
  };
}
