import { StringDecoder } from 'node:string_decoder';

/** Cuts what comes in pieces, which may end anywhere, even inside a character, into lines. */
export class LineReader {
  readonly #decoder = new StringDecoder('utf8');
  readonly #onLine: (line: string) => void;
  /** The pieces of a line that has not ended. They are joined once: a long line comes in many pieces. */
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
