import type { SourceLine } from './source-line.ts';

/** Lines written at the same time may be out of order, by far less than this. */
const REORDER_WINDOW_SECONDS = 2;

/** The position where a read starts. */
export interface LogAnchor {
  /** The read requests everything since this second. */
  second: number;
  /** The index of the first line of the response, from 0. */
  index: number;
  /** The timestamp of that line. A different first line means that the daemon has dropped lines. */
  stamp: string;
}

/**
 * The position up to which a container's lines are logged. The runtime's lines have no numbers and can only
 * be requested since a time. So the position is a second (the anchor), the index of the first line since
 * then, and the number of logged lines. For the same second the daemon returns the same lines, and the logged
 * ones are skipped. The anchor moves only to a second that cleanly separates earlier lines from later ones,
 * with nothing out of order around it.
 */
export class LogCursor {
  readonly #container: string;
  #anchor: LogAnchor;
  #candidates: LogAnchor[] = [];
  #observed: number;
  #newest = -Infinity;
  /** The number of logged lines. */
  written: number;
  /** All lines and the exit are logged. */
  complete: boolean;

  constructor(container: string, checkpoint: string) {
    this.#container = container;
    const [marked, second, index, written, stamp = '', complete] = checkpoint.split(' ');
    const known = marked === container;
    this.#anchor = known
      ? { second: Number(second), index: Number(index), stamp }
      : { second: 0, index: 0, stamp: '' };
    this.written = known ? Number(written) : 0;
    this.complete = known && complete !== undefined;
    this.#observed = this.#anchor.index;
  }

  /** A copy: another read may move the anchor. */
  get anchor(): Readonly<LogAnchor> {
    return { ...this.#anchor };
  }

  /** The mark for this number of logged lines. */
  mark(written: number, complete = false): string {
    const { second, index, stamp } = this.#anchor;
    return [this.#container, second, index, written, stamp, ...(complete ? ['complete'] : [])].join(' ');
  }

  /** Lines were lost in the daemon: the next line is one that is not logged yet. */
  skipLostLines(): void {
    this.#anchor = { second: this.#anchor.second, index: this.written, stamp: '' };
    this.#candidates = [];
    this.#observed = this.written;
  }

  /** Called for each line of each read. Known lines change nothing. */
  observe(index: number, { ts, stamp }: SourceLine): void {
    if (index !== this.#observed) return;
    this.#observed += 1;
    const second = Math.floor(ts / 1000);
    if (this.#anchor.stamp === '' && index === this.#anchor.index) this.#anchor.stamp = stamp;
    if (second > this.#newest) {
      this.#newest = second;
      this.#candidates.push({ second, index, stamp });
    } else this.#candidates = this.#candidates.filter((candidate) => candidate.second <= second);
    const settled = this.#candidates.findLastIndex(
      (candidate) => candidate.second <= this.#newest - REORDER_WINDOW_SECONDS,
    );
    if (settled === -1) return;
    this.#anchor = this.#candidates[settled] as LogAnchor;
    this.#candidates = this.#candidates.slice(settled);
  }
}

/** Whether the response starts with the anchor's line. */
export function startsAtAnchor({ stamp }: Readonly<LogAnchor>, first: SourceLine): boolean {
  return stamp === '' || stamp === first.stamp;
}
