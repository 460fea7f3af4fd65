import { NO_SPACE } from '../domain/log-line.ts';
import { formatBytes } from '../support/byte-size.ts';
import type { InstanceVolume } from './instance.ts';

/** How fast a disk may fill up: free space is looked at again before it can be used up. */
const FILL_BYTES_PER_MS = 1_000_000;
const MIN_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
/** How often what an instance uses is measured while the free space stays the same. */
const MEASURE_INTERVAL_MS = 30_000;
/** It is measured again at once when this part of the free space, or this much, is gone. */
const FALL_DIVISOR = 10;
const MIN_FALL_BYTES = 16_000_000;
/** To measure an instance may take this part of the time at most; half of it while the reserve is in use. */
const MEASURE_SHARE = 20;
/** What grew by less did not fill the disk. */
const MIN_GROWTH_BYTES = 1_000_000;

/** What an instance can write to: its container disk, a volume. */
export interface WritableDisk {
  /** In words: `its container disk`. */
  name: string;
  bytes: number;
  limitInGb: number | undefined;
  /** Asked before something is ended: a volume may have grown since the instance started. */
  currentLimitInGb?(): Promise<number | undefined>;
  /** It outlives the instance: what it held at the start is not the fault of this run. */
  lasting?: true;
}

/** One run of an instance. */
export interface GuardedInstance {
  readonly id: string;
  measureDisk(): Promise<WritableDisk[]>;
  logSystemLine(line: string): Promise<void>;
  /** Ends it at once. */
  stop(graceMs: number): Promise<void>;
}

/** One that says itself whether it runs. */
export interface EndableInstance extends GuardedInstance {
  readonly isRunning: boolean;
  readonly isStopping: boolean;
}

export interface DiskSize {
  freeBytes: number;
  totalBytes: number;
}

/** The size of a volume of this account now, in GB; undefined if it is not known. */
export type VolumeSizeReader = (volume: InstanceVolume, accountId: string) => Promise<number | undefined>;

export interface DiskGuardDeps {
  /** Those that run. The same run is the same object. */
  instances(): readonly GuardedInstance[];
  /** The disk that they write to; undefined if it is not known. */
  readDisk(): Promise<DiskSize | undefined>;
  /** With less than that free, the instance that grows most is ended. */
  reserveBytes: number;
  /** Milliseconds that never go back. */
  now(): number;
  /** Called with each instance that was ended, and with what could not be done. */
  onEnded(id: string, reason: string): void;
  onProblem(what: string, error: unknown): void;
}

interface Watched {
  disks: readonly WritableDisk[];
  /** What it held when it was first measured, of disks that outlive it. */
  first: ReadonlyMap<string, number>;
  /** What it used when there was enough space for all. */
  calmBytes: number;
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
 * when the free space is below the reserve, the one that grew most since there was enough.
 */
export class DiskGuard {
  readonly #deps: DiskGuardDeps;
  readonly #watched = new Map<GuardedInstance, Watched>();
  #freeAtMeasure = 0;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<unknown> | undefined;
  #closed = false;

  constructor(deps: DiskGuardDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#schedule(MAX_DELAY_MS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  #schedule(delay: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#round = this.check()
        .catch((error: unknown) => {
          this.#deps.onProblem('what instances write could not be checked', error);
          return MAX_DELAY_MS;
        })
        .then((next) => this.#schedule(next));
    }, delay).unref();
  }

  /** Looks once, and ends what has to end. Returns in how many milliseconds it has to look again. */
  async check(): Promise<number> {
    const running = this.#deps.instances();
    for (const instance of this.#watched.keys())
      if (!running.includes(instance)) this.#watched.delete(instance);
    if (running.length === 0) return MAX_DELAY_MS;
    const disk = await this.#deps.readDisk();
    const spare = disk === undefined ? Number.POSITIVE_INFINITY : disk.freeBytes - this.#reserveOf(disk);
    await this.#measureDue(running, spare);
    for (const instance of running) {
      const reason = await this.#overLimit(instance);
      if (reason !== undefined) await this.#end(instance, reason);
    }
    if (disk !== undefined && spare < 0) await this.#endBiggestGrower(disk.freeBytes);
    return Math.max(MIN_DELAY_MS, Math.min(MAX_DELAY_MS, spare / FILL_BYTES_PER_MS));
  }

  #reserveOf({ totalBytes }: DiskSize): number {
    const wanted = Math.min(this.#deps.reserveBytes, totalBytes / RESERVE_DIVISOR);
    return Math.max(MIN_RESERVE_BYTES, wanted);
  }

  async #measureDue(running: readonly GuardedInstance[], spare: number): Promise<void> {
    const fall = this.#freeAtMeasure - spare;
    const hasFallen = spare < 0 || fall > Math.max(MIN_FALL_BYTES, spare / FALL_DIVISOR);
    this.#freeAtMeasure = hasFallen ? spare : Math.max(this.#freeAtMeasure, spare);
    for (const instance of running) {
      const known = this.#watched.get(instance);
      const now = this.#deps.now();
      const dueAt = spare < 0 ? known?.urgentAt : hasFallen ? known?.earliestAt : known?.dueAt;
      if (now < (dueAt ?? 0)) continue;
      try {
        this.#noteMeasured(instance, await instance.measureDisk(), now, spare >= MIN_FALL_BYTES);
      } catch (error) {
        this.#deps.onProblem(`what ${instance.id} has written could not be measured`, error);
      }
    }
  }

  #noteMeasured(
    instance: GuardedInstance,
    disks: readonly WritableDisk[],
    startedAt: number,
    isCalm: boolean,
  ): void {
    const now = this.#deps.now();
    const known = this.#watched.get(instance);
    const lasting = disks.filter((one) => one.lasting === true);
    const used = sum(disks);
    this.#watched.set(instance, {
      disks,
      first: known?.first ?? new Map(lasting.map(({ name, bytes }) => [name, bytes])),
      // At the first measurement, all but what it found there is its own.
      calmBytes: isCalm ? used : (known?.calmBytes ?? sum(lasting)),
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

  async #endBiggestGrower(free: number): Promise<void> {
    const [biggest] = [...this.#watched]
      .map(([instance, { disks, calmBytes }]) => ({ instance, growth: sum(disks) - calmBytes }))
      .filter(({ growth }) => growth >= MIN_GROWTH_BYTES)
      .sort((one, other) => other.growth - one.growth);
    if (biggest === undefined) return;
    const reason =
      `${NO_SPACE}the disk of this machine has ${formatBytes(free)} left, and of all instances this one ` +
      `wrote most of late: ${formatBytes(biggest.growth)}.`;
    await this.#end(biggest.instance, reason);
  }

  async #end(instance: GuardedInstance, reason: string): Promise<void> {
    const { onEnded, onProblem } = this.#deps;
    this.#watched.delete(instance);
    const log = (): Promise<boolean> =>
      instance.logSystemLine(reason).then(
        () => true,
        () => false,
      );
    try {
      // On a full disk the line can be written only after the end.
      const logged = await log();
      await instance.stop(0);
      if (!logged) await log();
      onEnded(instance.id, reason);
    } catch (error) {
      onProblem(`${instance.id} writes more than it may, and could not be ended`, error);
    }
  }
}

/** A volume as one of the disks of an instance. */
export function volumeDisk({
  path,
  bytes,
  volume,
  accountId,
  volumeSize,
}: {
  path: string;
  bytes: number;
  volume: InstanceVolume;
  accountId: string;
  volumeSize: VolumeSizeReader | undefined;
}): WritableDisk {
  return {
    name: `the volume at ${path}`,
    bytes,
    limitInGb: volume.sizeInGb,
    ...(volumeSize !== undefined && { currentLimitInGb: () => volumeSize(volume, accountId) }),
    lasting: true,
  };
}

function isOver(bytes: number, limitInGb: number | undefined): boolean {
  return limitInGb !== undefined && bytes > limitInGb * BYTES_PER_GB;
}

function sum(disks: readonly WritableDisk[]): number {
  return disks.reduce((total, { bytes }) => total + bytes, 0);
}
