const NEWLINE = 0x0a;

/** Splits a stream of bytes into lines of text. A line may arrive in any number of pieces. */
export class LineReader {
  #rest: Buffer[] = [];
  #size = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that these bytes complete. Throws if one is longer than the limit. */
  read(bytes: Buffer): string[] {
    const end = bytes.lastIndexOf(NEWLINE);
    const lines = end === -1 ? [] : this.#whole(bytes, end).split('\n');
    if (end + 1 < bytes.length) {
      this.#rest.push(bytes.subarray(end + 1));
      this.#size += bytes.length - end - 1;
      if (this.#size > this.#maxBytes) throw new Error(`a line is longer than ${this.#maxBytes} bytes`);
    }
    return lines;
  }

  /** Everything up to this end as one text: splitting text is much faster than decoding each line. */
  #whole(bytes: Buffer, end: number): string {
    if (this.#rest.length === 0) return bytes.toString('utf8', 0, end);
    const whole = Buffer.concat([...this.#rest, bytes.subarray(0, end)]);
    this.#rest = [];
    this.#size = 0;
    return whole.toString();
  }
}
