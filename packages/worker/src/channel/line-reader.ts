import { StringDecoder } from 'node:string_decoder';

/** Splits incoming data into lines. The data may be cut anywhere, even inside a character. */
export class LineReader {
  readonly #decoder = new StringDecoder('utf8');
  readonly #onLine: (line: string) => void;
  /** The parts of an incomplete line. They are joined once: a long line comes in many parts. */
  #partial: string[] = [];

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(piece: Buffer): void {
    const text = this.#decoder.write(piece);
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      const line = text.slice(from, end);
      from = end + 1;
      if (this.#partial.length === 0) this.#onLine(line);
      else {
        this.#partial.push(line);
        const whole = this.#partial.join('');
        this.#partial = [];
        this.#onLine(whole);
      }
    }
    if (from < text.length) this.#partial.push(from === 0 ? text : text.slice(from));
  }
}
