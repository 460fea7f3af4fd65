import type { LeaderElection } from '../../../cloud/src/store/leader-election.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

const TRY_EVERY_MS = 2_000;
/** How long the database takes to notice that a session is dead, at most. */
const DEAD_SESSION_MS = 8_000;

interface Session {
  process: SimulatedProcess;
  onLost(): void;
}

/**
 * A lock that one session of the database holds. The database ends a session that is dead or frozen, and its server
 * learns of it later: for a while two servers believe that they lead.
 */
export class SimulatedElection {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  #holder: Session | undefined;

  constructor(time: VirtualTime, random: SeededRandom) {
    this.#time = time;
    this.#random = random;
  }

  /** The session of the holder ends. Its server is told after a while. */
  cut(): void {
    const session = this.#holder;
    if (session === undefined) return;
    this.#holder = undefined;
    this.#time.after(this.#random.next() ** 2 * 3_000, session.process, () => session.onLost());
  }

  isHeldBy(process: SimulatedProcess): boolean {
    return this.#holder?.process === process;
  }

  /** A process crashed, or was frozen. */
  onSilent(process: SimulatedProcess): void {
    if (!this.isHeldBy(process)) return;
    this.#time.after(this.#random.next() * DEAD_SESSION_MS, undefined, () => {
      if (!this.isHeldBy(process)) return;
      if (process.hasCrashed || process.frozenUntil > this.#time.now) this.cut();
    });
  }

  join(process: SimulatedProcess): Pick<LeaderElection, 'start' | 'close'> {
    const time = this.#time;
    let isClosed = false;
    return {
      start: (onLead, onLost) => {
        const attempt = (): void => {
          if (isClosed) return;
          if (this.#holder !== undefined) return void time.after(TRY_EVERY_MS, process, attempt);
          this.#holder = {
            process,
            onLost: () => {
              if (isClosed) return;
              onLost();
              time.after(TRY_EVERY_MS, process, attempt);
            },
          };
          time.after(1, process, () => {
            if (this.isHeldBy(process) && !isClosed) onLead();
          });
        };
        time.after(this.#random.next() * 100, process, attempt);
      },
      close: async () => {
        isClosed = true;
        if (this.isHeldBy(process)) this.#holder = undefined;
      },
    };
  }
}
