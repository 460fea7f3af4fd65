import { errorMessage } from '../error-report.ts';
import { delay } from '../delay.ts';
import type { PollContext } from './poll-context.ts';

/**
 * Pings until the signal is aborted: this worker is alive and holds these jobs. After a failed ping, the next
 * one follows.
 */
export async function runPingLoop(
  { urls, http, consumer, log, pingMs }: PollContext,
  signal: AbortSignal,
): Promise<void> {
  if (urls.ping([]) === undefined) {
    log.warn('RUNPOD_WEBHOOK_PING is not set: no pings are sent');
    return;
  }
  for (; !signal.aborted; await delay(pingMs, signal)) {
    try {
      await http.request(urls.ping(consumer.jobIds()) ?? '', { idleTimeoutMs: 2 * pingMs, signal });
    } catch (error) {
      if (!signal.aborted) log.warn(`A ping failed: ${errorMessage(error)}`);
    }
  }
}
