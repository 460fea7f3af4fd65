import { ChurnMap } from './churn-map.ts';

/** A map whose keys are pairs. Two lookups cost less than building a combined key. */
export class PairMap<First, Second, Value> {
  readonly #maps = new ChurnMap<First, Map<Second, Value>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(first: First, second: Second): Value | undefined {
    return this.#size === 0 ? undefined : this.#maps.get(first)?.get(second);
  }

  set(first: First, second: Second, value: Value): void {
    let values = this.#maps.get(first);
    if (values === undefined) {
      values = new Map();
      this.#maps.set(first, values);
    }
    if (!values.has(second)) this.#size += 1;
    values.set(second, value);
  }

  delete(first: First, second: Second): void {
    const values = this.#maps.get(first);
    if (values?.has(second) !== true) return;
    this.#size -= 1;
    if (values.size === 1) this.#maps.delete(first);
    else values.delete(second);
  }

  deleteAll(first: First): void {
    this.#size -= this.#maps.get(first)?.size ?? 0;
    this.#maps.delete(first);
  }

  clear(): void {
    this.#maps.clear();
    this.#size = 0;
  }

  /** The values of all pairs with this first key. */
  valuesOf(first: First): Iterable<Value> {
    return this.#maps.get(first)?.values() ?? [];
  }

  /** The current values. */
  values(): Value[] {
    const all: Value[] = [];
    this.forEach((value) => all.push(value));
    return all;
  }

  /** Iterates over all values without allocating. */
  forEach(visit: (value: Value) => void): void {
    for (const values of this.#maps.values()) values.forEach(visit);
  }
}
