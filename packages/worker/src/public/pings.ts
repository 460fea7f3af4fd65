import { messageOf } from '../failure.ts';
import { pause } from '../pause.ts';
import type { Polling } from './polling.ts';

/** Says again and again that this worker lives and what it has in hand, until the signal ends it. A ping that fails is followed by the next one. */
export async function ping(
  { addresses, http, consumer, log, pingMs }: Polling,
  signal: AbortSignal,
): Promise<void> {
  if (addresses.ping([]) === undefined) {
    log.warn('RUNPOD_WEBHOOK_PING is not set: no pings are sent');
    return;
  }
  for (; !signal.aborted; await pause(pingMs, signal)) {
    try {
      await http.ask(addresses.ping(consumer.held()) ?? '', { silenceMs: 2 * pingMs, signal });
    } catch (error) {
      if (!signal.aborted) log.warn(`A ping failed: ${messageOf(error)}`);
    }
  }
}
