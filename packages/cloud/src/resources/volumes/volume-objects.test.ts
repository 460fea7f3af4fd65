import assert from 'node:assert/strict';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import { BerthError } from '../../support/errors.ts';
import { randomIds } from '../../support/ids.ts';
import type { FileOwner } from '../../support/file-owner.ts';
import type { Ids } from '../../support/ids.ts';
import { VolumeDirectory } from './volume-directory.ts';
import { VolumeObjects } from './volume-objects.ts';
import { VolumeUsageMeter } from './volume-usage.ts';

const isRule =
  (words: RegExp) =>
  (error: unknown): boolean =>
    error instanceof BerthError && error.code === 'rule' && words.test(error.message);

describe('objects with concurrent writes', () => {
  let data: string;
  let root: string;
  beforeEach(() => {
    data = mkdtempSync(join(tmpdir(), 'berth-objects-'));
    root = join(data, 'volume');
  });
  afterEach(() => rmSync(data, { recursive: true }));

  const objectsWith = ({ ids = randomIds, owner }: { ids?: Ids; owner?: FileOwner } = {}): VolumeObjects =>
    new VolumeObjects({
      directory: new VolumeDirectory({
        path: root,
        statePath: join(data, 'aside'),
        volumeExists: async () => true,
        fileOwner: async () => owner,
      }),
      capacity: 1_000_000,
      usage: new VolumeUsageMeter([root]),
      locks: new KeyedMutex(),
      ids,
    });
  const put = (objects: VolumeObjects, key: string): Promise<unknown> =>
    objects.put(key, { bytes: pieces('x'), length: 1, headers: {} });

  test('a file of somebody else that the account has linked into its volume is not read', async () => {
    mkdirSync(root);
    for (const name of ['secret', 'earlier']) writeFileSync(join(data, name), name);
    linkSync(join(data, 'secret'), join(root, 'linked'));
    renameSync(join(data, 'earlier'), join(root, 'earlier'));
    linkSync(join(root, 'earlier'), join(root, 'again'));
    const reads = async (uid: number): Promise<string[]> => {
      const owner = { uid, gid: 0 };
      const found = ['linked', 'earlier', 'again'].map(
        async (key) => (await objectsWith({ owner }).head(key))?.key,
      );
      return (await Promise.all(found)).filter((key) => key !== undefined);
    };
    const own = process.getuid?.() ?? 0;
    assert.deepEqual(await reads(own), ['linked', 'earlier', 'again']);
    assert.deepEqual(await reads(own + 1), []);
    rmSync(join(root, 'again'));
    // Of an earlier version, which gave no files away.
    assert.deepEqual(await reads(own + 1), ['earlier']);
  });

  test('of a file and a folder of the same name, one is stored and the other refused', async () => {
    const objects = objectsWith();
    for (let round = 0; round < 20; round += 1) {
      const both = await Promise.allSettled([put(objects, `${round}`), put(objects, `${round}/below`)]);
      const refused = both.filter((one) => one.status === 'rejected');
      assert.equal(refused.length, 1);
      assert.ok(
        isRule(/is a folder in this volume|is a file, or a link/)(refused[0]?.reason),
        String(refused[0]?.reason),
      );
    }
  });

  test('a folder that a pod creates meanwhile gives a rule error', async () => {
    let asked = 0;
    // The second id is asked for between the look at what is there and the rename.
    const ids: Ids = {
      ...randomIds,
      resource: () => {
        if ((asked += 1) === 2) mkdirSync(join(root, 'contended'));
        return randomIds.resource();
      },
    };
    await assert.rejects(
      put(objectsWith({ ids }), 'contended'),
      isRule(/"contended" is a folder in this volume/),
    );
    assert.deepEqual(readdirSync(join(data, 'aside', 'arriving')), []);
  });

  test('an implicit folder is deleted with its last object, under concurrent writes', async () => {
    const objects = objectsWith();
    await Promise.all(
      ['a', 'b', 'c'].map(async (name) => {
        for (let round = 0; round < 60; round += 1) {
          await put(objects, `deep/deeper/${name}`);
          await objects.remove(`deep/deeper/${name}`);
        }
      }),
    );
    assert.deepEqual(readdirSync(root), []);
  });

  test('an implicit folder is deleted with its last object, also after an attempt to delete it earlier', async () => {
    const objects = objectsWith();
    await put(objects, 'folder/file');
    await objects.remove('folder/');
    assert.ok(existsSync(join(root, 'folder', 'file')));
    await objects.remove('folder/file');
    assert.deepEqual(readdirSync(root), []);
  });
});

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}
