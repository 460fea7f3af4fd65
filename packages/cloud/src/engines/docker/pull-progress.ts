/** One message of the daemon while it pulls an image. */
export interface PullMessage {
  status?: string;
  /** The id of a layer. */
  id?: string;
  progressDetail?: { current?: number; total?: number };
  error?: string;
}

/** The step between two progress lines. */
const PERCENT_STEP = 10;
const MEGABYTE = 1_000_000;

interface Layer {
  current: number;
  total: number;
  done: boolean;
}

/** Condenses the messages of a pull to a few progress lines. */
export class PullProgress {
  readonly #layers = new Map<string, Layer>();
  #reportedPercent = 0;

  /** The progress line after this message, if one is due. */
  update({ status = '', id, progressDetail }: PullMessage): string | undefined {
    // The first message has the tag as its id.
    if (id === undefined || status.startsWith('Pulling from')) return undefined;
    const layer = this.#layers.get(id) ?? { current: 0, total: 0, done: false };
    this.#layers.set(id, layer);
    if (status === 'Downloading')
      Object.assign(layer, {
        current: progressDetail?.current ?? layer.current,
        total: progressDetail?.total ?? layer.total,
      });
    else if (status === 'Download complete') layer.current = layer.total;
    else if (status === 'Pull complete' || status === 'Already exists') layer.done = true;
    return this.#line();
  }

  #line(): string | undefined {
    const layers = [...this.#layers.values()];
    const known = layers.filter(({ total, done }) => total > 0 || done);
    const current = known.reduce((sum, layer) => sum + layer.current, 0);
    const total = known.reduce((sum, layer) => sum + layer.total, 0);
    // Wait until the size of every layer is known; the percentage would go back otherwise.
    if (known.length < layers.length || total === 0) return undefined;
    const percent = Math.floor((100 * current) / total);
    if (percent < this.#reportedPercent + PERCENT_STEP) return undefined;
    this.#reportedPercent = percent - (percent % PERCENT_STEP);
    return (
      `${this.#reportedPercent} % of ${(total / MEGABYTE).toFixed(1)} MB are here, ` +
      `${layers.filter(({ done }) => done).length} of ${layers.length} layers are unpacked.`
    );
  }
}
