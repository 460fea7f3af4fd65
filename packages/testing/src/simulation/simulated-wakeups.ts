import type { Wakeup, WakeupBus } from '../../../cloud/src/store/wakeup-bus.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

const MAX_LATENCY_MS = 30;

/** What servers on one database tell each other. It may be late, and it may be lost. */
export class SimulatedWakeups {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #handlers = new Map<SimulatedProcess, ((wakeup: Wakeup) => void)[]>();
  lossRate = 0;

  constructor(time: VirtualTime, random: SeededRandom) {
    this.#time = time;
    this.#random = random;
  }

  join(process: SimulatedProcess): WakeupBus {
    const handlers: ((wakeup: Wakeup) => void)[] = [];
    this.#handlers.set(process, handlers);
    return {
      publish: (wakeup) => this.#publish(process, wakeup),
      subscribe: (handler) => void handlers.push(handler),
      close: async () => this.leave(process),
    };
  }

  leave(process: SimulatedProcess): void {
    this.#handlers.delete(process);
  }

  #publish(from: SimulatedProcess, wakeup: Wakeup): void {
    if (from.hasCrashed) return;
    for (const [process, handlers] of this.#handlers) {
      if (process === from || this.#random.chance(this.lossRate)) continue;
      this.#time.after(this.#random.next() ** 3 * MAX_LATENCY_MS, process, () => {
        for (const handler of handlers) handler(wakeup);
      });
    }
  }
}
