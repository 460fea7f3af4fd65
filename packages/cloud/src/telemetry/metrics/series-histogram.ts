import type { Metric, Registry } from 'prom-client';

type Labels = Readonly<Record<string, string | number>>;

/** The observations of one combination of labels. */
export class Series {
  readonly labels: Labels;
  readonly #bounds: readonly number[];
  /** How many were up to each bound and above the one before; the last counts those above all. */
  readonly #counts: number[];
  #sum = 0;

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let index = 0;
    while (index < this.#bounds.length && value > (this.#bounds[index] as number)) index += 1;
    (this.#counts[index] as number) += 1;
    this.#sum += value;
  }

  /** As Prometheus reads it: each bucket includes those below it. */
  values(name: string): { metricName: string; labels: Labels; value: number }[] {
    let count = 0;
    const buckets = this.#counts.map((inBucket, index) => {
      count += inBucket;
      const labels = { le: this.#bounds[index] ?? '+Inf', ...this.labels };
      return { metricName: `${name}_bucket`, labels, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: this.labels, value: this.#sum },
      { metricName: `${name}_count`, labels: this.labels, value: count },
    ];
  }
}

/**
 * A histogram of prom-client, but for `observe`: that one joins the labels to a text and looks the series up
 * with every observation, which takes 0.6 to 1.2 µs of a request's 25 µs. Here the caller keeps the series.
 */
export class SeriesHistogram {
  readonly name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #series: Series[] = [];

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name;
    this.#help = help;
    this.#bounds = bounds;
  }

  /** The registry calls `get` and reads `name`, which is all that this has of a metric. */
  register(registry: Registry): this {
    registry.registerMetric(this as unknown as Metric);
    return this;
  }

  /** A new series; no other may have the same labels. */
  series(labels: Labels): Series {
    const series = new Series(labels, this.#bounds);
    this.#series.push(series);
    return series;
  }

  async get(): Promise<object> {
    return {
      name: this.name,
      help: this.#help,
      type: 'histogram',
      aggregator: 'sum',
      values: this.#series.flatMap((series) => series.values(this.name)),
    };
  }
}
