/**
 * A map for what comes and goes, often one at a time. A Map that becomes empty gets a new table
 * from V8, and its old one points to the new. Once the first of these tables is old, all that
 * follow outlive the collection of young objects, however short their time was. Here a map that
 * would become empty is left behind for a new one.
 *
 * Whoever goes through it while its last entry is deleted may still meet that entry.
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
