import { readFileSync } from 'node:fs';
import { readIfExists, writePrivateFile } from '../support/private-file.ts';

const SAVE_EVERY_MS = 60_000;

export interface SavedTimeDeps {
  /** Holds the server's time across a restart: a clock may be set while the server is down. */
  file: string;
  /** Milliseconds since the machine started, and what identifies that start. */
  machine?: { uptime(): number; boot(): string | undefined };
  /** Replaces the file system, in tests. */
  files?: { read(file: string): string | undefined; write(file: string, text: string): void };
}

interface Saved {
  boot: string;
  uptime: number;
  time: number;
}

/** The server's time, with the uptime of the machine: after a restart of the server it continues from there. */
export class SavedTime {
  readonly #file: string;
  readonly #machine: Required<SavedTimeDeps>['machine'];
  readonly #files: Required<SavedTimeDeps>['files'];
  #savedAt = -Infinity;

  constructor({ file, machine = thisMachine, files = fileSystem }: SavedTimeDeps) {
    this.#file = file;
    this.#machine = machine;
    this.#files = files;
  }

  /** What time it is now, by what was saved; undefined after a restart of the machine. */
  continued(): number | undefined {
    const saved = parseSaved(this.#files.read(this.#file));
    return saved !== undefined && saved.boot === this.#machine.boot()
      ? saved.time + this.#machine.uptime() - saved.uptime
      : undefined;
  }

  /**
   * Saves it once a minute, and always where it was set. Where the disk takes no writes, it is tried again.
   */
  save(time: number, wasSet = false): void {
    const boot = this.#machine.boot();
    const uptime = this.#machine.uptime();
    if (boot === undefined || (!wasSet && uptime - this.#savedAt < SAVE_EVERY_MS)) return;
    try {
      this.#files.write(this.#file, `${JSON.stringify({ boot, uptime, time } satisfies Saved)}\n`);
      this.#savedAt = uptime;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      this.#savedAt = -Infinity;
    }
  }
}

const fileSystem = {
  read: readIfExists,
  // Not synced: after a power cut the machine has started again, and nothing of it is used.
  write: (file: string, text: string): void => writePrivateFile(file, text, { flush: false }),
};

const thisMachine = {
  uptime: (): number => Number(process.hrtime.bigint() / 1_000_000n),
  boot: (): string | undefined => {
    try {
      return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    } catch {
      // Not Linux. A restart then takes the time of the reference.
      return undefined;
    }
  },
};

function parseSaved(text: string | undefined): Saved | undefined {
  try {
    const saved = JSON.parse(text ?? 'null') as Saved | null;
    return saved !== null && Number.isFinite(saved.uptime) && Number.isFinite(saved.time) ? saved : undefined;
  } catch {
    return undefined;
  }
}
