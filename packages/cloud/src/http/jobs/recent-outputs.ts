/** How long, and how much of it. */
const KEEP_MS = 1_000;
const MAX_BYTES = 32 * 1024 * 1024;

/**
 * Large outputs that were just read. A client that asks for the same one over many connections would have it
 * read from the store each time, which takes 5 ms for 10 MB while nobody else is served.
 */
export class RecentOutputs {
  readonly #outputs = new Map<string, { bytes: Uint8Array; timer: NodeJS.Timeout }>();
  #size = 0;

  /** Bytes that are kept now. */
  get size(): number {
    return this.#size;
  }

  /** The output of a job that has ended, from memory or from `read`. */
  async get(
    jobId: string,
    endedAt: number | null,
    read: () => Promise<Uint8Array | undefined>,
  ): Promise<Uint8Array | undefined> {
    // A job that was retried has another end.
    const name = `${jobId} ${endedAt}`;
    const kept = this.#outputs.get(name);
    if (kept !== undefined) {
      kept.timer.refresh();
      return kept.bytes;
    }
    const bytes = await read();
    if (bytes !== undefined && !this.#outputs.has(name)) this.#keep(name, bytes);
    return bytes;
  }

  #keep(name: string, bytes: Uint8Array): void {
    if (bytes.length > MAX_BYTES) return;
    for (const oldest of this.#outputs.keys()) {
      if (this.#size + bytes.length <= MAX_BYTES) break;
      this.#drop(oldest);
    }
    this.#outputs.set(name, { bytes, timer: setTimeout(() => this.#drop(name), KEEP_MS).unref() });
    this.#size += bytes.length;
  }

  #drop(name: string): void {
    const kept = this.#outputs.get(name);
    if (kept === undefined) return;
    clearTimeout(kept.timer);
    this.#outputs.delete(name);
    this.#size -= kept.bytes.length;
  }
}
