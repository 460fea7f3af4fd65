/**
 * Rows of roll-ups, packed: whole numbers of eight bytes, the highest byte first, fourteen to a row.
 * A month keeps its days like this. Objects for a year of days would cost more than all else that
 * its history needs.
 */
export const FIELD = {
  /** The start of the hour, day or month, in seconds since 1970. */
  bucket: 0,
  /** The last instant that something changed. */
  lastAt: 1,
  /** The first of four, in the order of `PARTS`. */
  rate: 2,
  /** The same. */
  late: 6,
  runs: 10,
  runsLate: 11,
  diskInGb: 12,
  addedInGb: 13,
  /**
   * Months alone have these four: the whole days of what was late. Rate times seconds of a month would
   * outgrow eight bytes.
   */
  lateDays: 14,
} as const;

export const FIELDS = 14;
export const MONTH_FIELDS = 18;
const FIELD_BYTES = 8;
const HIGH = 2 ** 32;

export class PackedSums {
  readonly count: number;
  readonly fields: number;
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array, fields: number = FIELDS) {
    this.bytes = bytes;
    this.fields = fields;
    this.count = bytes.byteLength / (fields * FIELD_BYTES);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  static of(rows: readonly (readonly (number | bigint)[])[], fields: number = FIELDS): PackedSums {
    const packed = new PackedSums(new Uint8Array(rows.length * fields * FIELD_BYTES), fields);
    for (const [row, values] of rows.entries())
      for (let field = 0; field < fields; field += 1) packed.#set(row, field, values[field] ?? 0);
    return packed;
  }

  /** As a number, which is the nearest one where it is too large to be exact: only what was late may be. */
  toNumber(row: number, field: number): number {
    const at = (row * this.fields + field) * FIELD_BYTES;
    return this.#view.getInt32(at) * HIGH + this.#view.getUint32(at + 4);
  }

  toBigInt(row: number, field: number): bigint {
    return this.#view.getBigInt64((row * this.fields + field) * FIELD_BYTES);
  }

  /** Both together: what is in the same bucket is added up. Each is by time, and so is the whole. */
  merge(other: PackedSums): PackedSums {
    if (this.count === 0) return other;
    const whole = new PackedSums(new Uint8Array(this.bytes.byteLength + other.bytes.byteLength), this.fields);
    const length = this.fields * FIELD_BYTES;
    let [count, mine, theirs] = [0, 0, 0];
    while (mine < this.count || theirs < other.count) {
      const [one, two] = [
        mine < this.count ? this.toNumber(mine, FIELD.bucket) : Infinity,
        theirs < other.count ? other.toNumber(theirs, FIELD.bucket) : Infinity,
      ];
      const [from, row] = one <= two ? [this, mine] : [other, theirs];
      whole.bytes.set(from.bytes.subarray(row * length, (row + 1) * length), count * length);
      if (one === two) whole.#add(count, other, theirs);
      if (one <= two) mine += 1;
      if (two <= one) theirs += 1;
      count += 1;
    }
    return new PackedSums(whole.bytes.subarray(0, count * length), this.fields);
  }

  #add(row: number, other: PackedSums, theirs: number): void {
    this.#set(
      row,
      FIELD.lastAt,
      Math.max(this.toNumber(row, FIELD.lastAt), other.toNumber(theirs, FIELD.lastAt)),
    );
    for (let field = FIELD.rate; field < this.fields; field += 1)
      this.#set(row, field, this.toBigInt(row, field) + other.toBigInt(theirs, field));
  }

  #set(row: number, field: number, value: number | bigint): void {
    const at = (row * this.fields + field) * FIELD_BYTES;
    if (typeof value === 'bigint') return this.#view.setBigInt64(at, value);
    const high = Math.floor(value / HIGH);
    this.#view.setInt32(at, high);
    this.#view.setUint32(at + 4, value - high * HIGH);
  }
}

export const NO_SUMS = new PackedSums(new Uint8Array(0));
