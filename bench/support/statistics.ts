/** The value below which the given share of all is found. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The worst of several rounds: the lowest rate, the longest time. */
export function worst(values: readonly number[], better: 'higher' | 'lower'): number {
  return better === 'higher' ? Math.min(...values) : Math.max(...values);
}
