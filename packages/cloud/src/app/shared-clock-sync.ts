import type { DatabaseTime } from '../store/clock-store.ts';
import { CLOCK_STEP_MS } from '../support/steady-clock.ts';
import { SavedTime } from './saved-time.ts';
import type { SavedTimeDeps } from './saved-time.ts';
import { describeStep, isClockOff } from './clock-sync.ts';
import type { ClockSync, ClockSyncDeps } from './clock-sync.ts';

const SAMPLE_EVERY_MS = 5_000;
/** An answer that took longer says too little about when it was given. */
const MAX_ROUND_TRIP_MS = 1_000;
/**
 * What the leading server wrote is followed while it is this fresh, and continued after a restart for this
 * long.
 */
const SHARED_IS_FRESH_MS = 30_000;
const SHARED_IS_CONTINUED_MS = 3_600_000;
/** A server whose time differs this often in a row takes the time of the leading one. */
const MAX_DISAGREEMENTS = 3;

/**
 * Goes by the clock of the database, which all servers see. When that clock is set, each server holds its own
 * time, which agrees with the others'. The leader stores the difference from the clock of the database,
 * so that a server that joins later agrees too.
 */
export class SharedClockSync implements ClockSync {
  readonly #deps: ClockSyncDeps;
  readonly #saved: SavedTime | undefined;
  #sampledAt = -Infinity;
  #disagreements = 0;
  #wallOffset: number;
  isLeading = false;

  /** `saved`: where this server keeps its time across a restart. */
  constructor(deps: ClockSyncDeps, saved?: SavedTimeDeps) {
    this.#deps = deps;
    this.#saved = saved && new SavedTime(saved);
    this.#wallOffset = deps.clock.wall() - deps.clock.monotonic();
  }

  async restore(): Promise<void> {
    const { clock, log } = this.#deps;
    // The clock of this machine may be hours off: an answer that took seconds is better than that.
    const sample = (await this.#sample()) ?? (await this.#sample()) ?? (await this.#sample(Infinity));
    if (sample === undefined) return;
    const { now, shared } = sample;
    const offset = shared !== undefined && isWithin(sample, SHARED_IS_CONTINUED_MS) ? shared.offset : 0;
    // What is not fresh may be from before the clock of the database was set. This server knows better.
    const continued = isWithin(sample, SHARED_IS_FRESH_MS) ? undefined : this.#saved?.continued();
    clock.set(continued ?? now + offset);
    clock.observe(now);
    this.#saved?.save(clock.now(), true);
    const wall = clock.wall() - clock.now();
    if (isClockOff(wall))
      log.warn(
        { aheadMs: Math.round(wall) },
        'the clock of this machine differs from the time of this installation, which goes by the database; check both',
      );
  }

  async tick(): Promise<void> {
    this.#watchMachine();
    const { clock } = this.#deps;
    if (clock.monotonic() - this.#sampledAt < SAMPLE_EVERY_MS) return;
    this.#sampledAt = clock.monotonic();
    const sample = await this.#sample();
    if (sample === undefined) return;
    await (this.isLeading ? this.#lead(sample) : this.#follow(sample));
    this.#saved?.save(clock.now());
  }

  async #lead({ now }: DatabaseTime): Promise<void> {
    const { clock, store, log } = this.#deps;
    const step = clock.observe(now);
    if (step !== 0)
      log.warn(
        { stepMs: step, aheadMs: Math.round(clock.ahead) },
        `the clock of the database was ${describeStep(step)}; deadlines and billing do not count it`,
      );
    await (store.leading ?? store).clock.saveShared({ offset: Math.round(-clock.ahead), writtenAt: now });
  }

  async #follow(sample: DatabaseTime): Promise<void> {
    const { clock, log } = this.#deps;
    // After the clock of the database was set, it is not fresh until the leading server has written it again.
    if (sample.shared === undefined || !isWithin(sample, SHARED_IS_FRESH_MS)) return;
    const time = sample.now + sample.shared.offset;
    clock.observe(time);
    this.#disagreements = isClockOff(clock.ahead) ? this.#disagreements + 1 : 0;
    if (this.#disagreements < MAX_DISAGREEMENTS) return;
    this.#disagreements = 0;
    log.warn(
      { aheadMs: Math.round(clock.ahead) },
      'the time of the leading server is used: this one differed',
    );
    clock.set(time);
    this.#saved?.save(time, true);
  }

  /** Set or not, the clock of this machine decides nothing but the expiry of keys. */
  #watchMachine(): void {
    const { clock, log } = this.#deps;
    const offset = clock.wall() - clock.monotonic();
    const step = offset - this.#wallOffset;
    if (!isClockOff(step)) return;
    this.#wallOffset = offset;
    log.warn(
      { stepMs: Math.round(step) },
      `the clock of this machine was ${describeStep(step)}; deadlines and billing do not count it`,
    );
  }

  /** As of now: half of the round trip is added. Undefined where the answer took too long. */
  async #sample(maxRoundTrip = MAX_ROUND_TRIP_MS): Promise<DatabaseTime | undefined> {
    const { clock, store } = this.#deps;
    const began = clock.monotonic();
    const found = await store.clock.databaseTime();
    const took = clock.monotonic() - began;
    if (found === undefined || took > maxRoundTrip) return undefined;
    return { ...found, now: Math.round(found.now + took / 2) };
  }
}

function isWithin({ now, shared }: DatabaseTime, milliseconds: number): boolean {
  const age = now - (shared?.writtenAt ?? -Infinity);
  return age >= -CLOCK_STEP_MS && age <= milliseconds;
}
