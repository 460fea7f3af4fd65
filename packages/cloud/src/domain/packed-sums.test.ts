import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { FIELD, FIELDS, PackedSums } from './packed-sums.ts';

const DAY = 86_400;
const large = fc.bigInt({ min: -(2n ** 61n), max: 2n ** 61n });
const safe = fc.maxSafeInteger().map(BigInt);
/** At most a day each, so that a sum of many fits into eight bytes. */
const change = fc
  .tuple(
    fc.nat(30),
    fc.nat(DAY - 1),
    fc.array(fc.integer({ min: -1e9, max: 1e9 }).map(BigInt), {
      minLength: FIELDS - 2,
      maxLength: FIELDS - 2,
    }),
  )
  .map(([day, second, values]): bigint[] => [BigInt(day * DAY), BigInt(day * DAY + second), ...values]);
const rowsOf = (packed: PackedSums): bigint[][] =>
  Array.from({ length: packed.count }, (_, row) =>
    Array.from({ length: packed.fields }, (_unused, field) => packed.toBigInt(row, field)),
  );

test('packing and reading returns the same numbers, up to eight bytes', () =>
  checkProperty(
    fc.property(fc.array(fc.oneof(large, safe), { minLength: FIELDS, maxLength: FIELDS }), (values) => {
      const packed = PackedSums.of([values, values.map(Number)]);
      assert.deepEqual(rowsOf(packed)[0], values);
      for (const [field, value] of values.entries()) {
        assert.equal(packed.toNumber(0, field), Number(value));
        if (Number.isSafeInteger(Number(value))) assert.equal(packed.toBigInt(1, field), value);
      }
    }),
  ));

test('rows added one by one are one row for each bucket, by time, with the sums and the last instant', () =>
  checkProperty(
    fc.property(fc.array(change), (list) => {
      const packed = list.reduce((sum, one) => sum.merge(PackedSums.of([one])), PackedSums.of([]));
      const expected = new Map<bigint, bigint[]>();
      for (const one of list) {
        const before = expected.get(one[FIELD.bucket] ?? 0n);
        const sum = one.map((value, field) => {
          const other = before?.[field] ?? 0n;
          if (field === FIELD.bucket) return value;
          if (field === FIELD.lastAt) return value > other ? value : other;
          return value + other;
        });
        expected.set(one[FIELD.bucket] ?? 0n, sum);
      }
      assert.deepEqual(
        rowsOf(packed),
        [...expected.values()].sort(([one = 0n], [other = 0n]) => Number(one - other)),
      );
    }),
  ));

test('adding does not change either operand', () => {
  const bytes = new Uint8Array(1 + FIELDS * 8);
  bytes.set(PackedSums.of([[DAY, DAY + 5, 7]]).bytes, 1);
  const [one, other] = [
    new PackedSums(bytes.subarray(1)),
    PackedSums.of([
      [0, 1, 2],
      [DAY, DAY + 9, -3],
    ]),
  ];
  assert.deepEqual(
    rowsOf(one.merge(other)).map((row) => row.slice(0, 3)),
    [
      [0n, 1n, 2n],
      [86_400n, 86_409n, 4n],
    ],
  );
  assert.deepEqual([one.toNumber(0, FIELD.rate), other.count, other.toNumber(1, FIELD.rate)], [7, 2, -3]);
});
