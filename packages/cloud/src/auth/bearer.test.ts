import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { bearerKey } from './bearer.ts';

describe('the bearer header', () => {
  test('holds a key without spaces; the scheme is not case-sensitive', async () => {
    const scheme = fc.constantFrom('Bearer', 'bearer', 'BEARER', 'bEaReR');
    await checkProperty(
      fc.property(
        scheme,
        fc.stringMatching(/^[!-~]{1,80}$/),
        fc.constantFrom(' ', '   '),
        (word, key, blank) => assert.equal(bearerKey(`${word}${blank}${key}`), key),
      ),
    );
  });

  test('of another form holds no key', () => {
    for (const header of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      'Bearer  ',
      'key',
      'Basic a2V5',
      'Bearerkey',
      'Bearer two words',
      ' Bearer key',
    ])
      assert.equal(bearerKey(header), undefined, header);
  });
});
