export type Reply = string | number | null | Error | Reply[];

const CARRIAGE_RETURN = 0x0d;

/** Reads Redis replies from a stream of bytes, however it is cut. */
export class ReplyReader {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  /** The replies that these bytes complete. */
  read(bytes: Buffer): Reply[] {
    this.#bytes = this.#at < this.#bytes.length ? Buffer.concat([this.#bytes.subarray(this.#at), bytes]) : bytes;
    this.#at = 0;
    const replies: Reply[] = [];
    for (;;) {
      const start = this.#at;
      const reply = this.#next();
      if (reply === undefined) {
        this.#at = start;
        return replies;
      }
      replies.push(reply);
    }
  }

  #next(): Reply | undefined {
    const end = this.#bytes.indexOf(CARRIAGE_RETURN, this.#at);
    if (end === -1 || end + 1 >= this.#bytes.length) return undefined;
    const kind = String.fromCharCode(this.#bytes[this.#at] ?? 0);
    const line = this.#bytes.toString('latin1', this.#at + 1, end);
    this.#at = end + 2;
    switch (kind) {
      case '+':
        return line;
      case '-':
        return new Error(line);
      case ':':
        return Number(line);
      case '$':
        return this.#text(Number(line));
      case '*':
        return this.#list(Number(line));
      default:
        throw new Error(`Redis answered with an unknown kind ${JSON.stringify(kind)}`);
    }
  }

  #text(length: number): string | null | undefined {
    if (length === -1) return null;
    if (this.#at + length + 2 > this.#bytes.length) return undefined;
    const text = this.#bytes.toString('utf8', this.#at, this.#at + length);
    this.#at += length + 2;
    return text;
  }

  #list(length: number): Reply[] | null | undefined {
    if (length === -1) return null;
    const list: Reply[] = [];
    for (let index = 0; index < length; index += 1) {
      const reply = this.#next();
      if (reply === undefined) return undefined;
      list.push(reply);
    }
    return list;
  }
}
