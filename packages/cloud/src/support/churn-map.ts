/**
 * A map for short-lived entries, often one at a time. A Map that becomes empty gets a new table from V8, and
 * its old table points to the new one. Once the first of these tables is old, all following ones survive
 * minor garbage collections, however short their life. Here a map that would become empty is replaced by a
 * new one.
 * An iteration that runs while the last entry is deleted may still see that entry.
 */
export class ChurnMap<Key, Value> {
  #map = new Map<Key, Value>();

  get size(): number {
    return this.#map.size;
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key);
  }

  has(key: Key): boolean {
    return this.#map.has(key);
  }

  set(key: Key, value: Value): void {
    this.#map.set(key, value);
  }

  delete(key: Key): void {
    if (this.#map.size > 1) this.#map.delete(key);
    else if (this.#map.has(key)) this.#map = new Map();
  }

  clear(): void {
    if (this.#map.size > 0) this.#map = new Map();
  }

  keys(): MapIterator<Key> {
    return this.#map.keys();
  }

  values(): MapIterator<Value> {
    return this.#map.values();
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.#map.entries();
  }
}
