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
    const lines: string[] = [];
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, from)) {
      lines.push(this.#line(bytes, from, end));
      from = end + 1;
    }
    if (from < bytes.length) {
      this.#rest.push(bytes.subarray(from));
      this.#size += bytes.length - from;
      if (this.#size > this.#longest) throw new Error(`a line is longer than ${this.#longest} bytes`);
    }
    return lines;
  }

  #line(bytes: Buffer, from: number, end: number): string {
    if (this.#rest.length === 0) return bytes.toString('utf8', from, end);
    const whole = Buffer.concat([...this.#rest, bytes.subarray(from, end)]);
    this.#rest = [];
    this.#size = 0;
    return whole.toString();
  }
}
