import { readFileSync } from 'node:fs';
import { readIfExists, writePrivateFile } from '../support/private-file.ts';
import { describeStep, isClockOff } from './clock-keeper.ts';
import type { ClockKeeper, ClockKeeperDeps } from './clock-keeper.ts';

const SAVE_EVERY_MS = 60_000;
const TRY_TO_SET_EVERY_MS = 5_000;
/** Less than half of the smallest step. */
const SAME_TURN_MS = 900;

export interface MachineClockDeps extends ClockKeeperDeps {
  /** Holds the server's time across a restart: the clock of the machine may be set while the server is down. */
  file: string;
  /** Milliseconds since the machine started, and what identifies that start. */
  machine?: { uptime(): number; boot(): string | undefined };
  /** Replaces the file system, in tests. */
  files?: {
    read(file: string): string | undefined;
    write(file: string, text: string): void;
  };
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
  readonly #files: Required<MachineClockDeps>['files'];
  #savedAt = -Infinity;
  #triedAt = -Infinity;
  isLeading = true;

  constructor(deps: MachineClockDeps) {
    this.#deps = deps;
    this.#machine = deps.machine ?? thisMachine;
    this.#files = deps.files ?? fileSystem;
  }

  async restore(): Promise<void> {
    const { clock, file, log } = this.#deps;
    const saved = parseSaved(this.#files.read(file));
    const continued = saved && saved.time + this.#machine.uptime() - saved.uptime;
    if (
      continued !== undefined &&
      saved?.boot === this.#machine.boot() &&
      isClockOff(clock.now() - continued)
    ) {
      clock.set(continued);
      log.warn(
        { aheadMs: Math.round(clock.ahead) },
        'the clock of this machine was set before the restart; deadlines and billing go on without it',
      );
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
    this.#savedAt = -Infinity;
    // A job that was submitted in the same turn is written after it.
    await new Promise((resolve) => setImmediate(resolve));
    await store.clock.moveJobsOf({ from: before - SAME_TURN_MS, to: before + SAME_TURN_MS }, ahead);
    log.info({ aheadMs: ahead }, 'nothing runs or waits: the time of the machine is used again');
  }

  #save(): void {
    const { clock, file } = this.#deps;
    const boot = this.#machine.boot();
    if (boot === undefined || clock.monotonic() - this.#savedAt < SAVE_EVERY_MS) return;
    this.#savedAt = clock.monotonic();
    this.#files.write(
      file,
      `${JSON.stringify({ boot, uptime: this.#machine.uptime(), time: clock.now() } satisfies SavedTime)}\n`,
    );
  }
}

const fileSystem = {
  read: readIfExists,
  // Not synced: after a power cut the machine has started anew, and nothing of it is used.
  write: (file: string, text: string): void => writePrivateFile(file, text, { flush: false }),
};

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
