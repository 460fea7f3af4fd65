import { SavedTime } from './saved-time.ts';
import type { SavedTimeDeps } from './saved-time.ts';
import { describeStep, isClockOff } from './clock-sync.ts';
import type { ClockSync, ClockSyncDeps } from './clock-sync.ts';

const TRY_TO_SET_EVERY_MS = 5_000;
/** Less than half of the smallest step. */
const SAME_TURN_MS = 900;

export type MachineClockDeps = ClockSyncDeps & SavedTimeDeps;

/**
 * Goes by the clock of this machine. A machine that slept looks the same as one whose clock was set ahead:
 * what ran and waited slept with it, so deadlines do not count the time asleep. When nothing runs or waits
 * any more, the server takes the machine's time at once.
 */
export class MachineClockSync implements ClockSync {
  readonly #deps: ClockSyncDeps;
  readonly #saved: SavedTime;
  #triedAt = -Infinity;
  isLeading = true;

  constructor(deps: MachineClockDeps) {
    this.#deps = deps;
    this.#saved = new SavedTime(deps);
  }

  async restore(): Promise<void> {
    const { clock, log } = this.#deps;
    const continued = this.#saved.continued();
    if (continued !== undefined && isClockOff(clock.now() - continued)) {
      clock.set(continued);
      log.warn(
        { aheadMs: Math.round(clock.ahead) },
        'the clock of this machine was set before the restart; deadlines and billing go on without it',
      );
    }
    clock.observe(clock.wall());
    this.#saved.save(clock.now(), true);
  }

  async tick(): Promise<void> {
    const { clock, log } = this.#deps;
    const step = clock.observe(clock.wall());
    if (step !== 0) {
      log.warn(
        { stepMs: step, aheadMs: Math.round(clock.ahead) },
        `the clock of this machine was ${describeStep(step)}, or the machine slept; deadlines and ` +
          'billing do not count it',
      );
    }
    if (isClockOff(clock.ahead)) await this.#setWhenIdle();
    this.#saved.save(clock.now(), step !== 0);
  }

  async #setWhenIdle(): Promise<void> {
    const { clock, store, log } = this.#deps;
    if (clock.monotonic() - this.#triedAt < TRY_TO_SET_EVERY_MS) return;
    this.#triedAt = clock.monotonic();
    const ahead = Math.round(clock.ahead);
    const [before, monotonic] = [clock.now(), clock.monotonic()];
    const set = (): void => clock.set(before + ahead + Math.round(clock.monotonic() - monotonic));
    if (!(await store.clock.moveDueTimes(ahead, set))) return;
    this.#saved.save(clock.now(), true);
    // A job that was submitted in the same turn is written after it.
    await new Promise((resolve) => setImmediate(resolve));
    await store.clock.moveJobsOf({ from: before - SAME_TURN_MS, to: before + SAME_TURN_MS }, ahead);
    log.info({ aheadMs: ahead }, 'nothing runs or waits: the time of the machine is used again');
  }
}
