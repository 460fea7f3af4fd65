import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { sha256Hex, hashApiKey, Sealer } from './crypto.ts';
import { BerthError } from './errors.ts';

const masterKey = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const text = fc.string({ unit: 'grapheme' });
const doesNotOpen = (error: unknown): boolean => error instanceof BerthError && error.code === 'internal';

describe('a sealed value', () => {
  test('opens to the original value and does not contain it', async () => {
    await checkProperty(
      fc.property(masterKey, text, text, (key, plain, context) => {
        const sealed = new Sealer(key).seal(plain, context);
        assert.equal(new Sealer(key).open(sealed, context), plain);
        assert.match(sealed, /^v1\.[A-Za-z0-9+/]+=*$/);
        if (plain.length > 5) assert.ok(!Buffer.from(sealed.slice(3), 'base64').includes(plain));
      }),
    );
  });

  test('does not open with another key', async () => {
    await checkProperty(
      fc.property(masterKey, masterKey, text, text, (key, other, plain, context) => {
        fc.pre(!key.equals(other));
        assert.throws(
          () => new Sealer(other).open(new Sealer(key).seal(plain, context), context),
          doesNotOpen,
        );
      }),
    );
  });

  test('does not open in another context', async () => {
    await checkProperty(
      fc.property(masterKey, text, text, text, (key, plain, context, other) => {
        fc.pre(context !== other);
        assert.throws(() => new Sealer(key).open(new Sealer(key).seal(plain, context), other), doesNotOpen);
      }),
    );
  });

  test('does not open after a bit flip or truncation', async () => {
    await checkProperty(
      fc.property(masterKey, text, fc.nat(), fc.nat(7), fc.nat(), (key, plain, position, bit, cut) => {
        const sealer = new Sealer(key);
        const bytes = Buffer.from(sealer.seal(plain, 'row').slice(3), 'base64');
        const turned = Buffer.from(bytes);
        turned[position % turned.length]! ^= 1 << bit;
        assert.throws(() => sealer.open(`v1.${turned.toString('base64')}`, 'row'), doesNotOpen);
        assert.throws(
          () => sealer.open(`v1.${bytes.subarray(0, cut % bytes.length).toString('base64')}`, 'row'),
          doesNotOpen,
        );
      }),
    );
  });

  test('differs each time, so that equal values cannot be recognised', () => {
    const sealer = new Sealer(Buffer.alloc(32));
    assert.equal(new Set(Array.from({ length: 100 }, () => sealer.seal('same', 'row'))).size, 100);
  });

  test('is required: other text does not open', async () => {
    const sealer = new Sealer(Buffer.alloc(32));
    await checkProperty(
      fc.property(fc.string(), (junk) => assert.throws(() => sealer.open(junk, 'row'), doesNotOpen)),
    );
  });
});

describe('the hash of a key', () => {
  test('differs per key and is not a plain digest', async () => {
    await checkProperty(
      fc.property(text, text, (one, other) =>
        assert.equal(hashApiKey(one) === hashApiKey(other), one === other),
      ),
    );
    assert.notEqual(hashApiKey('key'), sha256Hex('key'));
    assert.match(hashApiKey('key'), /^[0-9a-f]{64}$/);
  });
});
