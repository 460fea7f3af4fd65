const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines of text. A line may arrive in any number of pieces. */
export class LineReader {
  #rest: Buffer[] = [];
  #size = 0;
  readonly #longest: number;

  constructor(longest: number) {
    this.#longest = longest;
  }

  /** The lines that these bytes complete. Throws where one grows beyond the limit. */
  read(bytes: Buffer): string[] {
    const end = bytes.lastIndexOf(NEWLINE);
    const lines = end === -1 ? [] : this.#whole(bytes, end).split('\n');
    if (end + 1 < bytes.length) {
      this.#rest.push(bytes.subarray(end + 1));
      this.#size += bytes.length - end - 1;
      if (this.#size > this.#longest) throw new Error(`a line is longer than ${this.#longest} bytes`);
    }
    return lines;
  }

  /** What came before, up to this end. It is read at once: text is cut in far less time than bytes are read. */
  #whole(bytes: Buffer, end: number): string {
    if (this.#rest.length === 0) return bytes.toString('utf8', 0, end);
    const whole = Buffer.concat([...this.#rest, bytes.subarray(0, end)]);
    this.#rest = [];
    this.#size = 0;
    return whole.toString();
  }
}
