import { Gauge } from './prometheus-client.ts';
import type { Registry } from './prometheus-client.ts';

/** A read that takes longer is left out, so that a database that hangs does not hide the other metrics. */
const READ_TIMEOUT_MS = 2_000;

export interface GaugeValue {
  labels: Record<string, string>;
  value: number;
}

export interface GaugeFamily<T> {
  name: string;
  help: string;
  labelNames: string[];
  /** The values in what was read; those with the same labels are added up. */
  valuesIn(found: T): Iterable<GaugeValue>;
}

/**
 * Families whose values are read when Prometheus asks, with one read for all of them. Where the read fails
 * they have no values, and the rest of /metrics is as ever.
 */
export function exposeReadGauges<T>(
  registry: Registry,
  read: () => Promise<T>,
  families: readonly GaugeFamily<T>[],
): void {
  let pending: Promise<T | undefined> | undefined;
  const readOnce = (): Promise<T | undefined> =>
    (pending ??= withinTime(read).finally(() => (pending = undefined)));
  for (const { name, help, labelNames, valuesIn } of families) {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect: async () => {
        const found = await readOnce();
        gauge.reset();
        if (found === undefined) return;
        for (const { labels, value } of valuesIn(found)) gauge.inc(labels, value);
      },
    });
  }
}

/** Undefined where it fails or takes too long. */
async function withinTime<T>(read: () => Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), READ_TIMEOUT_MS);
  });
  try {
    return await Promise.race([read(), late]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
