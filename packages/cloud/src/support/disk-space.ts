import type { DiskReserve } from './disk-reserve.ts';
import { BerthError } from './errors.ts';
import type { Log } from './log.ts';

/** Below this, new data is refused: what is left is for results, for deletes and for starting again. */
const LOW_BYTES = 4_000_000;
/** Below this part of the disk, and this much at most, what is left is shared out. */
const SCARCE_DIVISOR = 20;
const MAX_SCARCE_BYTES = 1_000_000_000;
const CHECK_INTERVAL_MS = 1_000;
/** While it is low: service is back within this time after space is. */
const LOW_CHECK_INTERVAL_MS = 200;

/** Whether the disk of the data folder has room for new data. */
export class DiskSpace {
  readonly #reserve: DiskReserve;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #isLow = false;
  #scarceBytes: number | undefined;
  #closed = false;

  constructor(reserve: DiskReserve, log: Log) {
    this.#reserve = reserve;
    this.#log = log;
  }

  get isLow(): boolean {
    return this.#isLow;
  }

  /** How much there is to share out among accounts; undefined while there is plenty. */
  get scarceBytes(): number | undefined {
    return this.#scarceBytes;
  }

  /** Throws if there is no room for new data. */
  checkRoom(): void {
    if (this.#isLow)
      throw new BerthError(
        'unavailable',
        'the disk that holds the data directory is full, and new data is refused; nothing was changed. ' +
          'Delete something, or give the disk more space',
        { headers: { 'retry-after': '1' } },
      );
  }

  /**
   * A write failed for lack of space. Returns whether to retry with space from the reserve.
   * Jobs get the first half of it: the rest is for deletes.
   */
  onFull(forJobs = false, wantedBytes = 0): boolean {
    this.#setLow(true);
    return this.#reserve.release(forJobs ? this.#reserve.wholeBytes / 2 : 0, wantedBytes);
  }

  start(): void {
    this.#schedule(0);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #schedule(delay: number): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#check(), delay).unref();
  }

  async #check(): Promise<void> {
    try {
      // With the reserve whole again, and room for new data beside it.
      const missing = this.#isLow ? Math.max(0, this.#reserve.targetBytes - this.#reserve.bytes) : 0;
      const hasRoom = this.#reserve.freeBytes >= LOW_BYTES + missing;
      if (hasRoom) await this.#reserve.fill();
      const scarce = LOW_BYTES + Math.min(MAX_SCARCE_BYTES, this.#reserve.totalBytes / SCARCE_DIVISOR);
      this.#scarceBytes = this.#reserve.freeBytes < scarce ? scarce : undefined;
      this.#setLow(!hasRoom);
    } catch (error) {
      this.#log.warn({ err: error }, 'the free space of the data folder could not be checked');
    }
    this.#schedule(this.#isLow ? LOW_CHECK_INTERVAL_MS : CHECK_INTERVAL_MS);
  }

  #setLow(isLow: boolean): void {
    if (isLow === this.#isLow) return;
    this.#isLow = isLow;
    if (isLow) {
      this.#log.error('the disk of the data folder is full: new data is refused until there is space');
      this.#schedule(LOW_CHECK_INTERVAL_MS);
    } else this.#log.info('the disk of the data folder has space again');
  }
}
