import assert from 'node:assert/strict';
import { resolve, sep } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { imageDigest, imageFileFindings } from './image-files.ts';
import type { ImageFile } from './image-files.ts';

const file = (path: string, content = '', executable = false): ImageFile => ({
  path,
  content: Buffer.from(content),
  executable,
});
const findings = (...paths: string[]): string[] => imageFileFindings(paths.map((path) => ({ path })));

describe('the paths of an image', () => {
  test('stay below its folder', async () => {
    const path = fc
      .array(fc.constantFrom('..', '.', '', 'a', 'b.ts', '/', 'C:', '\\', ' ', '~', '…'), {
        minLength: 1,
        maxLength: 6,
      })
      .map((parts) => parts.join('/'));
    await checkProperty(
      fc.property(path, (given) => {
        if (findings(given).length > 0) return;
        const place = resolve('/images/x', given);
        assert.ok(place.startsWith(`/images/x${sep}`), given);
        assert.equal(place, `/images/x/${given}`);
      }),
    );
  });

  test('outside the folder, and invalid ones, are refused', () => {
    for (const path of [
      '',
      '/etc/passwd',
      '../x',
      'a/../../x',
      'a/..',
      './a',
      'a//b',
      'a/',
      'C:/x',
      'c:x',
      'a\\b',
      '..\\x',
      'a\nb',
      'a\u0000b',
      'a'.repeat(256),
      `${'a/'.repeat(600)}b`,
      'é'.repeat(128),
    ]) {
      assert.equal(findings(path).length, 1, JSON.stringify(path.slice(0, 40)));
    }
    for (const path of [
      'a',
      '.env',
      '..a',
      'a..b/c',
      'node_modules/@x/y/z.js',
      'with space',
      'é'.repeat(127),
    ])
      assert.deepEqual(findings(path), [], path);
  });

  test('do not collide with each other', () => {
    assert.match(findings('a', 'a').join(), /same path/);
    assert.match(findings('a', 'a/b').join(), /"a" is a file and cannot hold "a\/b"/);
    assert.match(findings('x/y/z', 'x').join(), /"x" is a file/);
    assert.deepEqual(findings('a/b', 'a/c', 'ab'), []);
    assert.match(findings().join(), /at least one file/);
  });
});

describe('the digest of an image', () => {
  test('is the same in any order', async () => {
    const files = fc.uniqueArray(
      fc.record({
        path: fc.string({ minLength: 1, maxLength: 8 }),
        content: fc.uint8Array({ maxLength: 16 }),
        executable: fc.boolean(),
      }),
      { selector: ({ path }) => path, minLength: 1, maxLength: 6 },
    );
    await checkProperty(
      fc.property(files, fc.integer({ min: 0, max: 5 }), (given, turn) =>
        assert.equal(imageDigest([...given.slice(turn), ...given.slice(0, turn)]), imageDigest(given)),
      ),
    );
  });

  test('differs with every name, content and mode, and with where one file ends', () => {
    const sets = [
      [file('a', '1')],
      [file('a', '2')],
      [file('b', '1')],
      [file('a', '1', true)],
      [file('a', '1'), file('b')],
      [file('a'), file('b', '1')],
      [file('a', '1b')],
      [file('ab', '1')],
    ];
    assert.equal(new Set(sets.map(imageDigest)).size, sets.length);
    for (const set of sets) assert.match(imageDigest(set), /^[0-9a-f]{12}$/);
  });
});
