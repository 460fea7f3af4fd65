import { createHash } from 'node:crypto';

const MAX_LINES = 60;

interface TraceLine {
  at: number;
  text: string;
  isFault: boolean;
}

/** What happened in a run, to analyse a violation. */
export class SimulationTrace {
  readonly #now: () => number;
  readonly #lines: TraceLine[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  add(text: string): void {
    this.#lines.push({ at: this.#now(), text, isFault: false });
  }

  addFault(text: string): void {
    this.#lines.push({ at: this.#now(), text, isFault: true });
  }

  /** The same for two runs only where the same things happened in the same order at the same times. */
  hash(): string {
    const text = this.#lines.map((line) => `${line.at} ${line.text}`).join('\n');
    return createHash('sha256').update(text).digest('hex').slice(0, 16);
  }

  all(): string[] {
    return this.#lines.map(print);
  }

  /** The last lines that name it, with the faults between them. */
  about(what: string): string[] {
    const first = this.#lines.findIndex(({ text }) => text.includes(what));
    const from = first < 0 ? 0 : (this.#lines[first]?.at ?? 0) - 5_000;
    return this.#lines
      .filter(({ at, text, isFault }) => text.includes(what) || (isFault && at >= from))
      .slice(-MAX_LINES)
      .map(print);
  }
}

function print({ at, text, isFault }: TraceLine): string {
  return `${(at / 1000).toFixed(3).padStart(9)} ${isFault ? '!' : ' '} ${text}`;
}
