import { NO_SPACE } from '../domain/log-line.ts';
import { formatBytes } from '../support/byte-size.ts';
import type { InstanceVolume } from './instance.ts';

/** How fast a disk may fill up: free space is measured again before half of it can be used up. */
const FILL_BYTES_PER_MS = 2_000_000;
const MIN_DELAY_MS = 50;
/** To measure and to end an instance may take so long, and longer where the disk is busy. */
const REACTION_MS = 1_000;
/** The speed at which a disk fills up is half of it after this time. */
const SPEED_HALF_LIFE_MS = 1_000;
const MAX_DELAY_MS = 5_000;
/** How often what an instance uses is measured while the free space stays the same. */
const MEASURE_INTERVAL_MS = 30_000;
/** It is measured again at once when this part of the free space, or this much, is gone. */
const FALL_DIVISOR = 10;
const MIN_FALL_BYTES = 16_000_000;
/** To measure an instance may take this part of the time at most; half of it while the reserve is in use. */
const MEASURE_SHARE = 20;
/** Measured at the same time, so that one with many files does not keep the guard from the others for long. */
const MEASURED_TOGETHER = 4;
/** What grew by less did not fill the disk. */
const MIN_GROWTH_BYTES = 1_000_000;
/** What grew by less than this part of what is gone did not fill it alone. */
const GROWTH_DIVISOR = 4;

/** What an instance can write to: its container disk, a volume. */
export interface WritableDisk {
  /** In words: `its container disk`. */
  name: string;
  bytes: number;
  limitInGb: number | undefined;
  /** The file system that it is on; missing if it is the first of those that are watched. */
  disk?: string;
  /** Asked before something is ended: a volume may have grown since the instance started. */
  currentLimitInGb?(): Promise<number | undefined>;
  /** It outlives the instance: what it held at the start is not the fault of this run. */
  lasting?: true;
}

/** One run of an instance. */
export interface GuardedInstance {
  readonly id: string;
  measureDisk(): Promise<WritableDisk[]>;
  /** Ends it at once; the reason is among the last lines of its log. */
  endForSpace(reason: string): Promise<void>;
}

/** One that says itself whether it runs. */
export interface EndableInstance extends GuardedInstance {
  readonly isRunning: boolean;
  readonly isStopping: boolean;
}

export interface DiskSize {
  /** Names the file system. */
  disk: string;
  freeBytes: number;
  totalBytes: number;
}

/** The size of a volume of this account now, in GB; undefined if it is not known. */
export type VolumeSizeReader = (volume: InstanceVolume, accountId: string) => Promise<number | undefined>;

export interface DiskGuardDeps {
  /** Those that run. The same run is the same object. */
  instances(): readonly GuardedInstance[];
  /** The disks that are to be kept from filling up; none if they are not known. */
  readDisks(): Promise<readonly DiskSize[]>;
  /** With less than that free on one of them, the instance that grows most is ended. */
  reserveBytes: number;
  /** Milliseconds that never go back. */
  now(): number;
  /** Called with each instance that was ended, and with what could not be done. */
  onEnded(id: string, reason: string): void;
  onProblem(what: string, error: unknown): void;
}

/** How full a disk is, and becomes. */
interface Filling {
  spare: number;
  at: number;
  /** In bytes per millisecond. */
  speed: number;
  spareAtMeasurement: number;
  /** When there was enough for all. */
  spareBeforeShortage: number;
}

interface DiskState extends DiskSize {
  /** What is free beside the reserve. */
  spare: number;
  /** Something must be ended now. */
  isShort: boolean;
  hasFallen: boolean;
  /** What is gone since there was enough for all. */
  fall: number;
}

interface Watched {
  disks: readonly WritableDisk[];
  /** What it held when it was first measured, of disks that outlive it. */
  first: ReadonlyMap<string, number>;
  /** What it used of each when there was enough space for all. */
  calmBytes: ReadonlyMap<string, number>;
  dueAt: number;
  /** No sooner than this, while there is space. */
  earliestAt: number;
  /** No sooner than this, where the reserve is in use. */
  urgentAt: number;
}

/** The reserve takes no more than this part of a small disk, and no less than this much. */
const RESERVE_DIVISOR = 10;
const MIN_RESERVE_BYTES = 4_000_000;
const BYTES_PER_GB = 1024 ** 3;

/**
 * Keeps instances from taking the last space of a disk. What each has written is measured from time to time,
 * more often while the free space falls. An instance is ended when it has written more than its limit; and
 * when the free space is below the reserve, or will be within a second, the one that grew most since there was enough.
 */
export class DiskGuard {
  readonly #deps: DiskGuardDeps;
  readonly #watched = new Map<GuardedInstance, Watched>();
  readonly #filling = new Map<string, Filling>();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<unknown> | undefined;
  #isLooking = false;
  #closed = false;

  constructor(deps: DiskGuardDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#schedule(MAX_DELAY_MS);
  }

  /** An instance has started: the next look may be too late for one that writes at once. */
  checkSoon(): void {
    if (this.#timer === undefined || this.#isLooking) return;
    clearTimeout(this.#timer);
    this.#schedule(MIN_DELAY_MS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  #schedule(delay: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#isLooking = true;
      this.#round = this.check()
        .catch((error: unknown) => {
          this.#deps.onProblem('what instances write could not be checked', error);
          return MAX_DELAY_MS;
        })
        .then((next) => {
          this.#isLooking = false;
          this.#schedule(next);
        });
    }, delay).unref();
  }

  /** Looks once, and ends what has to end. Returns in how many milliseconds it has to look again. */
  async check(): Promise<number> {
    const running = this.#deps.instances();
    for (const instance of this.#watched.keys())
      if (!running.includes(instance)) this.#watched.delete(instance);
    if (running.length === 0) return MAX_DELAY_MS;
    const disks = await this.#deps.readDisks();
    const states = disks.map((disk) => this.#stateOf(disk));
    await this.#measureDue(running, states);
    for (const instance of running) {
      const reason = await this.#overLimit(instance);
      if (reason !== undefined) await this.#end(instance, reason);
    }
    for (const [index, state] of states.entries())
      if (state.isShort) await this.#endLargestWriter(state, index === 0);
    return Math.max(
      MIN_DELAY_MS,
      Math.min(MAX_DELAY_MS, ...states.map(({ spare }) => spare / FILL_BYTES_PER_MS)),
    );
  }

  #stateOf(disk: DiskSize): DiskState {
    const now = this.#deps.now();
    const spare = disk.freeBytes - reserveOf(disk, this.#deps.reserveBytes);
    const before = this.#filling.get(disk.disk) ?? {
      spare,
      at: now,
      speed: 0,
      spareAtMeasurement: 0,
      spareBeforeShortage: spare,
    };
    const passed = now - before.at;
    const recentSpeed = before.speed * 0.5 ** (passed / SPEED_HALF_LIFE_MS);
    const speed =
      spare > before.spare ? 0 : Math.max(recentSpeed, (before.spare - spare) / Math.max(1, passed));
    const isShort = spare < 0 || spare < Math.min(FILL_BYTES_PER_MS, speed) * REACTION_MS;
    const fall = before.spareAtMeasurement - spare;
    const hasFallen = isShort || fall > Math.max(MIN_FALL_BYTES, spare / FALL_DIVISOR);
    const spareAtMeasurement = hasFallen ? spare : Math.max(before.spareAtMeasurement, spare);
    const spareBeforeShortage = isShort ? before.spareBeforeShortage : spare;
    this.#filling.set(disk.disk, { spare, at: now, speed, spareAtMeasurement, spareBeforeShortage });
    return { ...disk, spare, isShort, hasFallen, fall: spareBeforeShortage - spare };
  }

  async #measureDue(running: readonly GuardedInstance[], states: readonly DiskState[]): Promise<void> {
    const isShort = states.some((state) => state.isShort);
    const hasFallen = states.some((state) => state.hasFallen);
    const isCalm = ({ disk }: WritableDisk): boolean => {
      const state = disk === undefined ? states[0] : states.find((one) => one.disk === disk);
      return state === undefined || (!state.isShort && state.spare >= MIN_FALL_BYTES);
    };
    const measure = async (instance: GuardedInstance): Promise<void> => {
      const known = this.#watched.get(instance);
      const now = this.#deps.now();
      const dueAt = isShort ? known?.urgentAt : hasFallen ? known?.earliestAt : known?.dueAt;
      if (now < (dueAt ?? 0)) return;
      try {
        this.#noteMeasured(instance, await instance.measureDisk(), now, isCalm);
      } catch (error) {
        this.#deps.onProblem(`what ${instance.id} has written could not be measured`, error);
      }
    };
    for (let index = 0; index < running.length; index += MEASURED_TOGETHER)
      await Promise.all(running.slice(index, index + MEASURED_TOGETHER).map(measure));
  }

  #noteMeasured(
    instance: GuardedInstance,
    disks: readonly WritableDisk[],
    startedAt: number,
    isCalm: (disk: WritableDisk) => boolean,
  ): void {
    const now = this.#deps.now();
    const known = this.#watched.get(instance);
    const lasting = disks.filter((one) => one.lasting === true);
    const first = known?.first ?? new Map(lasting.map(({ name, bytes }) => [name, bytes]));
    this.#watched.set(instance, {
      disks,
      first,
      // At the first measurement, all but what it found there is its own.
      calmBytes: new Map(
        disks.map((disk) => [
          disk.name,
          isCalm(disk) ? disk.bytes : (known?.calmBytes.get(disk.name) ?? first.get(disk.name) ?? 0),
        ]),
      ),
      dueAt: now + Math.max(MEASURE_INTERVAL_MS, MEASURE_SHARE * (now - startedAt)),
      earliestAt: now + MEASURE_SHARE * (now - startedAt),
      urgentAt: now + (now - startedAt),
    });
  }

  /** Why it must end; undefined if it is within its limits, or only found that much. */
  async #overLimit(instance: GuardedInstance): Promise<string | undefined> {
    const watched = this.#watched.get(instance);
    for (const writableDisk of watched?.disks ?? []) {
      const { name, bytes, limitInGb } = writableDisk;
      if (!isOver(bytes, limitInGb) || bytes <= (watched?.first.get(name) ?? 0)) continue;
      const limit = (await writableDisk.currentLimitInGb?.()) ?? limitInGb;
      if (isOver(bytes, limit))
        return `${NO_SPACE}it has written ${formatBytes(bytes)} to ${name}; the limit is ${limit} GB.`;
    }
    return undefined;
  }

  async #endLargestWriter({ disk, freeBytes, spare, fall }: DiskState, isFirst: boolean): Promise<void> {
    // While the reserve is not in use, only what takes a large part of the space.
    const least = Math.max(MIN_GROWTH_BYTES, spare < 0 ? 0 : fall / GROWTH_DIVISOR);
    const isOnIt = (one: WritableDisk): boolean => (one.disk === undefined ? isFirst : one.disk === disk);
    const growthOf = ({ disks, calmBytes }: Watched): number =>
      disks.filter(isOnIt).reduce((sum, { name, bytes }) => sum + bytes - (calmBytes.get(name) ?? 0), 0);
    const [biggest] = [...this.#watched]
      .map(([instance, watched]) => ({ instance, growth: growthOf(watched) }))
      .filter(({ growth }) => growth >= least)
      .sort((one, other) => other.growth - one.growth);
    if (biggest === undefined) return;
    const reason =
      `${NO_SPACE}the disk of this machine has ${formatBytes(freeBytes)} left, and of all instances this one ` +
      `wrote most of late: ${formatBytes(biggest.growth)}.`;
    await this.#end(biggest.instance, reason);
    // What it wrote meanwhile is not the fault of the others.
    this.#filling.delete(disk);
  }

  async #end(instance: GuardedInstance, reason: string): Promise<void> {
    const { onEnded, onProblem } = this.#deps;
    this.#watched.delete(instance);
    try {
      await instance.endForSpace(reason);
      onEnded(instance.id, reason);
    } catch (error) {
      onProblem(`${instance.id} writes more than it may, and could not be ended`, error);
    }
  }
}

/** What has to stay free of a disk. */
export function reserveOf({ totalBytes }: DiskSize, reserveBytes: number): number {
  return Math.max(MIN_RESERVE_BYTES, Math.min(reserveBytes, totalBytes / RESERVE_DIVISOR));
}

/** A volume as one of the disks of an instance. */
export function volumeDisk({
  path,
  bytes,
  disk,
  volume,
  accountId,
  volumeSize,
}: {
  path: string;
  bytes: number;
  disk?: string | undefined;
  volume: InstanceVolume;
  accountId: string;
  volumeSize: VolumeSizeReader | undefined;
}): WritableDisk {
  return {
    name: `the volume at ${path}`,
    bytes,
    limitInGb: volume.sizeInGb,
    ...(disk !== undefined && { disk }),
    ...(volumeSize !== undefined && { currentLimitInGb: () => volumeSize(volume, accountId) }),
    lasting: true,
  };
}

function isOver(bytes: number, limitInGb: number | undefined): boolean {
  return limitInGb !== undefined && bytes > limitInGb * BYTES_PER_GB;
}
