import { readFileSync, rmSync } from 'node:fs';
import { readIfExists, writePrivateFile } from '../support/private-file.ts';
import { describeStep, isClockOff } from './clock-keeper.ts';
import type { ClockKeeper, ClockKeeperDeps } from './clock-keeper.ts';

const SAVE_EVERY_MS = 60_000;
const TRY_TO_SET_EVERY_MS = 5_000;
/** Less than half of the smallest step. */
const SAME_TURN_MS = 900;

export interface MachineClockDeps extends ClockKeeperDeps {
  /** Holds the server's time across a restart, while it differs from the clock of the machine. */
  file: string;
  /** Milliseconds since the machine started, and what identifies that start. */
  machine?: { uptime(): number; boot(): string | undefined };
}

interface SavedTime {
  boot: string;
  uptime: number;
  time: number;
}

/**
 * Goes by the clock of this machine. A machine that slept looks the same as one whose clock was set ahead: what ran
 * and waited slept with it, so deadlines do not count the time asleep. When nothing runs or waits any more, the
 * server takes the machine's time at once.
 */
export class MachineClockKeeper implements ClockKeeper {
  readonly #deps: MachineClockDeps;
  readonly #machine: Required<MachineClockDeps>['machine'];
  #savedAt = -Infinity;
  #triedAt = -Infinity;
  #hasFile = false;
  isLeading = true;

  constructor(deps: MachineClockDeps) {
    this.#deps = deps;
    this.#machine = deps.machine ?? thisMachine;
  }

  async restore(): Promise<void> {
    const { clock, file, log } = this.#deps;
    const saved = parseSaved(readIfExists(file));
    this.#hasFile = saved !== undefined;
    if (saved !== undefined && saved.boot === this.#machine.boot()) {
      clock.set(saved.time + this.#machine.uptime() - saved.uptime);
      log.info({ aheadMs: Math.round(clock.ahead) }, 'the clock was set before the restart; deadlines go on');
    }
    clock.observe(clock.wall());
    this.#save();
  }

  async tick(): Promise<void> {
    const { clock, log } = this.#deps;
    const step = clock.observe(clock.wall());
    if (step !== 0) {
      log.warn(
        { stepMs: step, aheadMs: Math.round(clock.ahead) },
        `the clock of this machine was ${describeStep(step)}, or the machine slept; deadlines and billing do not count it`,
      );
      this.#savedAt = -Infinity;
    }
    if (isClockOff(clock.ahead)) await this.#setWhenIdle();
    this.#save();
  }

  async #setWhenIdle(): Promise<void> {
    const { clock, store, log } = this.#deps;
    if (clock.monotonic() - this.#triedAt < TRY_TO_SET_EVERY_MS) return;
    this.#triedAt = clock.monotonic();
    const ahead = Math.round(clock.ahead);
    const [before, monotonic] = [clock.now(), clock.monotonic()];
    const set = (): void => clock.set(before + ahead + Math.round(clock.monotonic() - monotonic));
    if (!(await store.clock.moveDueTimes(ahead, set))) return;
    // A job that was submitted in the same turn is written after it.
    await new Promise((resolve) => setImmediate(resolve));
    await store.clock.moveJobsOf({ from: before - SAME_TURN_MS, to: before + SAME_TURN_MS }, ahead);
    log.info({ aheadMs: ahead }, 'nothing runs or waits: the time of the machine is used again');
  }

  #save(): void {
    const { clock, file } = this.#deps;
    const boot = this.#machine.boot();
    if (!isClockOff(clock.ahead)) {
      if (this.#hasFile) rmSync(file, { force: true });
      this.#hasFile = false;
      return;
    }
    if (boot === undefined || clock.monotonic() - this.#savedAt < SAVE_EVERY_MS) return;
    this.#savedAt = clock.monotonic();
    writePrivateFile(
      file,
      `${JSON.stringify({ boot, uptime: this.#machine.uptime(), time: clock.now() } satisfies SavedTime)}\n`,
    );
    this.#hasFile = true;
  }
}

const thisMachine = {
  uptime: (): number => Number(process.hrtime.bigint() / 1_000_000n),
  boot: (): string | undefined => {
    try {
      return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    } catch {
      // Not Linux. A restart then takes the time of the machine.
      return undefined;
    }
  },
};

function parseSaved(text: string | undefined): SavedTime | undefined {
  try {
    const saved = JSON.parse(text ?? 'null') as SavedTime | null;
    return saved !== null && Number.isFinite(saved.uptime) && Number.isFinite(saved.time) ? saved : undefined;
  } catch {
    return undefined;
  }
}
