import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { asUnprivilegedUser } from '../../../../testing/src/unprivileged-user.ts';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import type { ObjectListingQuery } from './object-listing.ts';
import { listObjects } from './object-listing.ts';
import { compareObjectKeys, objectKeyProblem } from './object-key.ts';

const name = fc.constantFrom('a', 'a-', 'a.', 'a0', 'b', 'b b', 'é', '\uffe0', '\u{1f600}', 'z');
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));

/** What S3 would tell of these keys, in one go. */
function expected(
  keys: readonly string[],
  { prefix, delimiter }: Pick<ObjectListingQuery, 'prefix' | 'delimiter'>,
): string[] {
  const told = keys
    .filter((key) => key.startsWith(prefix))
    .map((key) => {
      const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      return at === -1 ? key : key.slice(0, at + delimiter.length);
    });
  return [...new Set(told)].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}

describe('an object listing', () => {
  test('equals the listing of S3 for the same keys, with any page size', async () => {
    await checkProperty(
      fc.asyncProperty(
        fc.array(path, { maxLength: 12 }),
        fc.oneof(
          fc.constant(''),
          path,
          path.map((one) => `${one}/`),
        ),
        fc.constantFrom('', '/', '-', 'a/'),
        fc.integer({ min: 1, max: 5 }),
        async (wanted, prefix, delimiter, limit) => {
          const root = mkdtempSync(join(tmpdir(), 'berth-listing-'));
          try {
            // A name is a file or a folder, never both: the later one is left out.
            const keys = wanted.filter(
              (key, index) =>
                wanted.indexOf(key) === index &&
                !wanted
                  .slice(0, index)
                  .some((other) => other.startsWith(`${key}/`) || key.startsWith(`${other}/`)),
            );
            for (const key of keys) {
              mkdirSync(dirname(join(root, key)), { recursive: true });
              writeFileSync(join(root, key), '');
            }
            const told: string[] = [];
            for (let after: string | undefined = ''; after !== undefined; ) {
              const page = await listObjects(root, { prefix, delimiter, after, limit }, async (key) => ({
                key,
                folder: false,
                size: 0,
                modifiedAt: 0,
                etag: '',
                headers: {},
                checksums: {},
              }));
              assert.ok(page.objects.length + page.prefixes.length <= limit);
              told.push(...[...page.objects.map(({ key }) => key), ...page.prefixes].sort(compareObjectKeys));
              after = page.next;
            }
            assert.deepEqual(told, expected(keys, { prefix, delimiter }));
          } finally {
            rmSync(root, { recursive: true });
          }
        },
      ),
      60,
    );
  });
});

describe("a list of objects, where folders are another user's", () => {
  let root: string;
  const told = async (prefix: string, delimiter = ''): Promise<string[]> => {
    const { objects, prefixes } = await listObjects(
      root,
      { prefix, delimiter, after: '', limit: 100 },
      async (key) => ({ key, folder: false, size: 0, modifiedAt: 0, etag: '', headers: {}, checksums: {} }),
    );
    return [...objects.map(({ key }) => key), ...prefixes];
  };
  before(() => {
    root = mkdtempSync(join(tmpdir(), 'berth-listing-'));
    for (const folder of ['shut', 'half', 'open']) mkdirSync(join(root, folder));
    for (const key of ['a', 'shut/x', 'half/x', 'open/x', 'z']) writeFileSync(join(root, key), '');
    symlinkSync('shut/x', join(root, 'link'));
    chmodSync(root, 0o755);
    chmodSync(join(root, 'shut'), 0);
    chmodSync(join(root, 'half'), 0o444);
  });
  after(() => {
    for (const folder of ['shut', 'half']) chmodSync(join(root, folder), 0o700);
    rmSync(root, { recursive: true });
  });

  test('leaves out only their contents', async () => {
    await asUnprivilegedUser(async () => {
      assert.deepEqual(await told(''), ['a', 'open/x', 'z']);
      assert.deepEqual(await told('', '/'), ['a', 'z', 'half/', 'open/', 'shut/']);
    });
  });

  test('is refused for a prefix inside one of them', async () => {
    await asUnprivilegedUser(() => assert.rejects(told('shut/'), { code: 'EACCES' }));
  });
});

test('keys are ordered by their UTF-8 bytes', async () => {
  await checkProperty(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
      assert.equal(
        Math.sign(compareObjectKeys(one, other)),
        Buffer.compare(Buffer.from(one), Buffer.from(other)),
      );
    }),
  );
});

test('no key leaves its volume', () => {
  for (const key of [
    '',
    '/',
    '..',
    '../a',
    'a/..',
    'a/../b',
    './a',
    'a//b',
    '/a',
    'a\0b',
    'a//',
    `${'n'.repeat(256)}`,
    'n/'.repeat(600),
  ])
    assert.notEqual(objectKeyProblem(key), undefined, key);
  for (const key of ['a', 'a/', 'a/b.c', '...', '.hidden', 'a\\b', 'n'.repeat(255), ' '])
    assert.equal(objectKeyProblem(key), undefined, key);
});
