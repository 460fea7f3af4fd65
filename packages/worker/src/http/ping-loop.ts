import { errorMessage } from '../error-report.ts';
import { delay } from '../delay.ts';
import type { PollContext } from './poll-context.ts';

/** Says again and again that this worker lives and what it has in hand, until the signal ends it. A ping that fails is followed by the next one. */
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
