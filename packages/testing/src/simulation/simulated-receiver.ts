import type { PostWebhook } from '../../../cloud/src/queue/webhooks/webhook-sender.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

export const WEBHOOK_URL = 'http://receiver.example/hook';
const MAX_LATENCY_MS = 200;
const FAILURE_RATE = 0.1;

/** One request that reached the receiver. */
export interface ReceivedWebhook {
  deliveryId: string;
  attempt: number;
  body: string;
  status: number;
}

/** What webhooks are sent to. It refuses some, and requests and answers may be lost. */
export class SimulatedReceiver {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly received: ReceivedWebhook[] = [];
  /** The share of requests and of answers that are lost. */
  lossRate = 0;

  constructor(time: VirtualTime, random: SeededRandom) {
    this.#time = time;
    this.#random = random;
  }

  /** How a server reaches it. What is lost is noticed by the time-out of the sender. */
  connect(server: SimulatedProcess): PostWebhook {
    const [time, random] = [this.#time, this.#random];
    const latency = (): number => random.next() ** 2 * MAX_LATENCY_MS;
    return (_url, body, headers, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        if (server.hasCrashed || random.chance(this.lossRate)) return;
        time.after(latency(), undefined, () => {
          const status = random.chance(FAILURE_RATE) ? 500 : 200;
          this.received.push({
            deliveryId: String(headers['X-Berth-Delivery']),
            attempt: Number(headers['X-Berth-Attempt']),
            body: body.toString(),
            status,
          });
          if (!random.chance(this.lossRate)) time.after(latency(), server, () => resolve(status));
        });
      });
  }
}
