import { formatBytes } from '../support/byte-size.ts';
import type { OutputStream } from './cli-context.ts';

const REFRESH_INTERVAL_MS = 200;

/**
 * Shows the progress of a long copy on one line of the terminal. Prints nothing if the output is not a
 * terminal.
 */
export class CopyProgress {
  readonly #stderr: OutputStream;
  readonly #shown: boolean;
  readonly #began = performance.now();
  #files = { done: 0, all: 0 };
  #addBytes = { done: 0, all: 0 };
  #last = 0;
  #width = 0;

  constructor(stderr: OutputStream) {
    this.#stderr = stderr;
    this.#shown = stderr.isTTY === true;
  }

  /** Adds to the known total. */
  addTotal(files: number, bytes: number): void {
    this.#files.all += files;
    this.#addBytes.all += bytes;
    this.#show();
  }

  /** Negative if bytes are copied again. */
  bytes(count: number): void {
    this.#addBytes.done += count;
    this.#show();
  }

  addFile(): void {
    this.#files.done += 1;
    this.#show();
  }

  get copied(): { files: number; bytes: number } {
    return { files: this.#files.done, bytes: this.#addBytes.done };
  }

  /** Writes the final state and ends the line. */
  finish(): void {
    if (!this.#shown || this.#width === 0) return;
    this.#write();
    this.#stderr.write('\n');
  }

  #show(): void {
    const now = performance.now();
    if (!this.#shown || now - this.#last < REFRESH_INTERVAL_MS) return;
    this.#last = now;
    this.#write();
  }

  #write(): void {
    const seconds = Math.max(0.001, (performance.now() - this.#began) / 1000);
    const share =
      this.#addBytes.all > 0
        ? `${Math.min(100, Math.floor((100 * this.#addBytes.done) / this.#addBytes.all))}%, `
        : '';
    const files = this.#files.all > 1 ? `${this.#files.done} of ${this.#files.all} files, ` : '';
    const of = this.#addBytes.all > 0 ? ` of ${formatBytes(this.#addBytes.all)}` : '';
    const line =
      `${share}${files}${formatBytes(this.#addBytes.done)}${of}, ` +
      `${formatBytes(this.#addBytes.done / seconds)}/s`;
    this.#stderr.write(`\r${line.padEnd(this.#width)}`);
    this.#width = line.length;
  }
}
