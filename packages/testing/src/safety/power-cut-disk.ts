import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { SyncFile } from '../../../cloud/src/store/sqlite/wal-sync.ts';
import type { SeededRandom } from './seeded-random.ts';

/** What a disk writes whole or not at all. */
const SECTOR_BYTES = 512;

/** When a cut happens: before a sync has done anything, or when the disk has all of it and nobody was told. */
export type CutMoment = 'sync begins' | 'sync has ended';

/**
 * What a disk holds after a power cut. What a sync found in a file is there when the sync has ended. Of everything that
 * was written since, each sector may be there or not, whatever the order in which they were written.
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

  /** Takes the place of fsync. Nothing is written to the file while its sync begins, so it is read as a whole. */
  readonly syncFile: SyncFile = (descriptor, done) => {
    const file = readlinkSync(`/proc/self/fd/${descriptor}`);
    const found = readFileSync(file);
    void this.#onSync(file, 'sync begins')
      .then(() => this.#synced.set(file, found))
      .then(() => this.#onSync(file, 'sync has ended'))
      .then(() => done(null));
  };

  /** Writes what is left of the files into a folder. `share` is how much of what was not synced is there. */
  cut(folder: string, share: number): void {
    mkdirSync(folder, { recursive: true });
    for (const [file, synced] of this.#synced)
      writeFileSync(join(folder, basename(file)), this.#remains(synced, readFileSync(file), share));
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
