import { shownSize } from './serverless/folder.ts';
import type { Writable } from './surroundings.ts';

const SHOW_EVERY_MS = 200;

/** Shows people how far a long copy is, on one line that is written over and over. Programs see nothing of it. */
export class Progress {
  readonly #stderr: Writable;
  readonly #shown: boolean;
  readonly #began = performance.now();
  #files = { done: 0, all: 0 };
  #bytes = { done: 0, all: 0 };
  #last = 0;
  #width = 0;

  constructor(stderr: Writable) {
    this.#stderr = stderr;
    this.#shown = stderr.isTTY === true;
  }

  /** So much is to be done, as far as is known. */
  expect(files: number, bytes: number): void {
    this.#files.all += files;
    this.#bytes.all += bytes;
    this.#show();
  }

  /** Negative where something is done again. */
  bytes(count: number): void {
    this.#bytes.done += count;
    this.#show();
  }

  file(): void {
    this.#files.done += 1;
    this.#show();
  }

  get copied(): { files: number; bytes: number } {
    return { files: this.#files.done, bytes: this.#bytes.done };
  }

  /** Leaves the line as it is at the end. */
  end(): void {
    if (!this.#shown || this.#width === 0) return;
    this.#write();
    this.#stderr.write('\n');
  }

  #show(): void {
    const now = performance.now();
    if (!this.#shown || now - this.#last < SHOW_EVERY_MS) return;
    this.#last = now;
    this.#write();
  }

  #write(): void {
    const seconds = Math.max(0.001, (performance.now() - this.#began) / 1000);
    const share =
      this.#bytes.all > 0
        ? `${Math.min(100, Math.floor((100 * this.#bytes.done) / this.#bytes.all))}%, `
        : '';
    const files = this.#files.all > 1 ? `${this.#files.done} of ${this.#files.all} files, ` : '';
    const of = this.#bytes.all > 0 ? ` of ${shownSize(this.#bytes.all)}` : '';
    const line = `${share}${files}${shownSize(this.#bytes.done)}${of}, ${shownSize(this.#bytes.done / seconds)}/s`;
    this.#stderr.write(`\r${line.padEnd(this.#width)}`);
    this.#width = line.length;
  }
}
