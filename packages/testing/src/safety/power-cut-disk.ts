import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { SyncFile } from '../../../cloud/src/store/sqlite/wal-sync.ts';
import type { SeededRandom } from './seeded-random.ts';

/** What a disk writes whole or not at all. */
const SECTOR_BYTES = 512;
/** How much of what was not synced is on the disk after a cut, for each file by itself. */
const WRITTEN_SHARES = [0, 0.05, 0.5, 0.95, 1];

/**
 * When a cut happens: before a sync has done anything, when others have gone on for a while, or when the disk
 * has all of it and nothing was acknowledged.
 */
export type CutMoment = 'sync begins' | 'sync goes on' | 'sync has ended';
/** How many turns of the event loop a sync takes. */
const SYNC_TURNS = 8;

/**
 * What a disk holds after a power cut. What a sync found in a file is there when the sync has ended. Of
 * everything that was written since, each sector may be there or not, whatever the order in which they were
 * written.
 */
export class PowerCutDisk {
  readonly #synced = new Map<string, Buffer>();
  readonly #random: SeededRandom;
  readonly #onSync: (file: string, moment: CutMoment) => Promise<void>;

  constructor(random: SeededRandom, onSync: (file: string, moment: CutMoment) => Promise<void>) {
    this.#random = random;
    this.#onSync = onSync;
  }

  /** All of these files is on the disk. */
  settle(files: readonly string[]): void {
    for (const file of files) this.#synced.set(file, readFileSync(file));
  }

  /**
   * Takes the place of fsync. Nothing is written to the file while its sync begins, so it is read as a whole.
   */
  readonly syncFile: SyncFile = (descriptor, done) => {
    const file = readlinkSync(`/proc/self/fd/${descriptor}`);
    const found = readFileSync(file);
    void this.#sync(file, found).then(() => done(null));
  };

  async #sync(file: string, found: Buffer): Promise<void> {
    await this.#onSync(file, 'sync begins');
    for (let turn = 0; turn < SYNC_TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await this.#onSync(file, 'sync goes on');
    this.#synced.set(file, found);
    await this.#onSync(file, 'sync has ended');
  }

  /** Writes what is left of the files into a folder. */
  cut(folder: string): void {
    mkdirSync(folder, { recursive: true });
    for (const [file, synced] of this.#synced) {
      const share = this.#random.pick(WRITTEN_SHARES) ?? 0;
      writeFileSync(join(folder, basename(file)), this.#remains(synced, readFileSync(file), share));
    }
  }

  #remains(synced: Buffer, written: Buffer, share: number): Buffer {
    const remains = Buffer.alloc(this.#random.chance(share) ? written.length : synced.length);
    for (let from = 0; from < remains.length; from += SECTOR_BYTES) {
      const source = this.#random.chance(share) ? written : synced;
      // Beyond the end of what was synced, a sector that was not written is empty.
      source.subarray(from, from + SECTOR_BYTES).copy(remains, from);
    }
    return remains;
  }
}
