import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import {
  foreignImageReason,
  localImageNameFindings,
  localImageReference,
  unqualifiedImageName,
  qualifiedImageName,
} from './local-image-names.ts';

const ann = 'ann0123456789x';
const bob = 'bob0123456789x';
const digest = 'abcdef012345';

describe('the name of an image', () => {
  test('has letters and digits with single separators', () => {
    for (const name of ['echo', 'my-app', 'v2_model', '7', 'a'.repeat(63)])
      assert.deepEqual(localImageNameFindings(name), [], name);
    for (const name of [
      '',
      '-a',
      'a-',
      'a--b',
      'a.b',
      'A',
      'a/b',
      '..',
      'é',
      'a b',
      'a:b',
      'a'.repeat(64),
      'shell',
    ])
      assert.equal(localImageNameFindings(name).length, 1, name);
  });

  test('contains its owner and is unique', () => {
    assert.equal(localImageReference('root', 'echo', digest), `local/echo:${digest}`);
    assert.equal(localImageReference(ann, 'echo', digest), `local/${ann}.echo:${digest}`);
    assert.equal(unqualifiedImageName('root', 'echo'), 'echo');
    assert.equal(unqualifiedImageName(ann, 'echo'), undefined);
    assert.equal(unqualifiedImageName('root', `${ann}.echo`), undefined);
  });

  test('for any two accounts and names, only the owner may run it', async () => {
    const account = fc.constantFrom('root', ann, bob);
    const name = fc.stringMatching(/^[a-z0-9]{1,8}(-[a-z0-9]{1,4})?$/).filter((text) => text !== 'shell');
    await checkProperty(
      fc.property(account, account, name, (owner, other, given) => {
        assert.equal(
          unqualifiedImageName(other, qualifiedImageName(owner, given)),
          owner === other ? given : undefined,
        );
        assert.equal(
          foreignImageReason(other, localImageReference(owner, given, digest)) === undefined,
          owner === other,
        );
      }),
    );
  });

  test('is open to all accounts if it is not an uploaded folder', () => {
    for (const image of [
      'local/shell',
      'local/shell:latest',
      'local/echo',
      'local/echo:latest',
      'python:3.12',
      'registry.example/local/echo:abcdef012345',
      '',
    ]) {
      for (const account of ['root', ann]) assert.equal(foreignImageReason(account, image), undefined, image);
    }
  });

  test('in another spelling is refused to other accounts too', () => {
    for (const image of [
      `local/${ann}.echo`,
      `local/${ann}.echo:latest`,
      `local/${ann}.echo:ABCDEF012345`,
      `local/${ann}.echo:../${digest}`,
      `local/${ann}.echo:${digest}\n`,
    ]) {
      for (const account of ['root', bob])
        assert.match(foreignImageReason(account, image) ?? '', /belongs to another account/, image);
    }
    assert.match(
      foreignImageReason(bob, `local/echo:${digest.toUpperCase()}`) ?? '',
      /belongs to another account/,
    );
  });
});
