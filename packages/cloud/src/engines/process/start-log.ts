import type { Clock } from '../../support/clock.ts';
import type { LogRetention } from '../logs/log-retention.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';

export interface StartLogOptions {
  id: string;
  logs: LogRetention;
  /** How much of the log is kept. */
  logBytes: number;
  clock: Clock;
  /** Called when the log is open, so that it can be read while the start continues. */
  onOpened: (log: SegmentedLog) => void;
  onProgress: ((line: string) => void) | undefined;
}

/**
 * The log of an instance while its environment is built. It is opened with the first line: most starts have
 * none.
 */
export class StartLog {
  readonly #options: StartLogOptions;
  #opening: Promise<SegmentedLog> | undefined;
  #written: Promise<void> = Promise.resolve();

  constructor(options: StartLogOptions) {
    this.#options = options;
  }

  /** Keeps the order of the lines. `progress`: what the reason of waiting jobs says meanwhile. */
  write(line: string, progress = line): void {
    const { clock, onProgress } = this.#options;
    const ts = clock.now();
    onProgress?.(progress);
    this.#opening ??= this.#open();
    const opening = this.#opening;
    this.#written = this.#written.then(async () => (await opening).append([{ ts, source: 'system', line }]));
    // Reported by the caller that reads the log.
    this.#written.catch(() => undefined);
  }

  /** The log with all lines; undefined if there is none. */
  async opened(): Promise<SegmentedLog | undefined> {
    await this.#written;
    return this.#opening;
  }

  /** The instance did not start. The log stays readable. */
  async fail(error: unknown): Promise<void> {
    const { id, logs } = this.#options;
    this.write(`Not started: ${error instanceof Error ? error.message : String(error)}`);
    await (await this.opened())?.end();
    await logs.startRetention(id);
  }

  async #open(): Promise<SegmentedLog> {
    const { id, logs, logBytes, onOpened } = this.#options;
    const log = await SegmentedLog.open(logs.folder(id), logBytes);
    await logs.retain(id);
    onOpened(log);
    return log;
  }
}
