import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { asUnprivilegedUser } from '../../../../testing/src/unprivileged-user.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import { auditEntry } from '../resource-context.ts';
import { VolumeContents } from './volume-contents.ts';

describe('the data of removed volumes', () => {
  let context: ServiceContext;
  let data: string;
  let bin: string;
  let problems: unknown[];
  let contents: VolumeContents;
  before(async () => {
    context = await createServiceContext();
  });
  after(() => context.close());
  beforeEach(() => {
    data = mkdtempSync(join(tmpdir(), 'berth-contents-'));
    bin = join(data, 'volumes', '.s3', '.removed');
    problems = [];
    contents = new VolumeContents(context, data, (error) => problems.push(error));
  });
  afterEach(() => rmSync(data, { recursive: true }));

  /** A volume, and the way to remove it as its account would. */
  const newVolume = async (): Promise<{ volume: NetworkVolume; remove(): Promise<void> }> => {
    const volume: NetworkVolume = {
      id: context.ids.resource(),
      accountId: context.root.accountId,
      name: 'data',
      size: 10,
      dataCenterId: 'LOCAL-1',
      type: 'STANDARD',
      createdAt: context.clock.now(),
    };
    const audit = auditEntry(context, context.root, 'create', 'network volume', volume.id);
    await context.store.volumes.insert(volume, audit);
    return {
      volume,
      remove: async () => {
        await context.store.volumes.remove(volume.accountId, volume.id, audit);
        await contents.remove(volume);
      },
    };
  };
  const isGone = (error: unknown): boolean => error instanceof BerthError && error.code === 'not-found';
  const left = (): string[] => [
    ...readdirSync(join(data, 'volumes')),
    ...readdirSync(join(data, 'volumes', '.s3')),
  ];

  test('is not created again by a write during the deletion', async () => {
    const { volume, remove } = await newVolume();
    const objects = contents.objects(volume);
    await objects.put('first', { bytes: pieces('x'), length: 1, headers: {} });
    const bytes = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from('before');
      await remove();
      yield Buffer.from('after');
    };
    await assert.rejects(objects.put('deep/second', { bytes: bytes(), length: 11, headers: {} }), isGone);
    assert.deepEqual(left(), ['.s3', '.removed']);
  });

  test('is not created again by concurrent writes during the deletion', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { volume, remove } = await newVolume();
      const objects = contents.objects(volume);
      const writing = Array.from({ length: 20 }, (_, index) =>
        objects.put(`folder ${index}/file`, { bytes: pieces('x'), length: 1, headers: {} }),
      );
      const settled = Promise.allSettled(writing);
      for (let turn = 0; turn < round; turn += 1) await new Promise(setImmediate);
      await remove();
      for (const one of await settled)
        if (one.status === 'rejected') assert.ok(isGone(one.reason), String(one.reason));
    }
    assert.deepEqual(left(), ['.s3', '.removed']);
  });

  test('is not created again by a write after the deletion', async () => {
    const { volume, remove } = await newVolume();
    const [objects, uploads] = [contents.objects(volume), contents.uploads(volume)];
    const upload = await uploads.create('in parts', {});
    await remove();
    await assert.rejects(objects.put('late', { bytes: pieces('x'), length: 1, headers: {} }), isGone);
    await assert.rejects(objects.put('late/', { bytes: pieces(), length: 0, headers: {} }), isGone);
    await assert.rejects(uploads.create('late', {}), isGone);
    await assert.rejects(uploads.putPart(upload, 1, { bytes: pieces('x'), length: 1 }), isGone);
    await assert.rejects(
      uploads.complete(upload, [{ number: 1, etag: 'x' }], () => undefined),
      isGone,
    );
    assert.deepEqual(left(), ['.s3', '.removed']);
  });

  test('is deleted, including what an earlier server left', async () => {
    mkdirSync(join(bin, 'left'), { recursive: true });
    writeFileSync(join(bin, 'left', 'file'), 'x');
    await contents.deleteRemovedData();
    assert.deepEqual([readdirSync(bin), problems], [[], []]);
  });

  test('causes no error if no volume was ever deleted', async () => {
    await contents.deleteRemovedData();
    assert.deepEqual(problems, []);
  });

  test('is deleted however deep it is', async () => {
    tooDeepFor(join(bin, 'b-0'));
    await contents.deleteRemovedData();
    assert.deepEqual([readdirSync(bin), problems], [[], []]);
  });

  test('is deleted even if that of another volume cannot be', {
    skip: process.getuid?.() !== 0,
  }, async () => {
    for (const name of ['a-0', 'b-0/folder', 'z-0']) mkdirSync(join(bin, name), { recursive: true });
    // Only the content of b-0 stays root's.
    for (const path of [bin, join(bin, 'a-0'), join(bin, 'z-0')]) chownSync(path, 65_534, 65_534);
    for (let path = bin; path !== data; path = dirname(path)) chmodSync(path, 0o755);
    chmodSync(data, 0o755);
    await asUnprivilegedUser(() => contents.deleteRemovedData());
    assert.deepEqual(readdirSync(bin), ['b-0']);
    assert.equal(problems.length, 1);
    await contents.deleteRemovedData();
    assert.deepEqual(readdirSync(bin), []);
  });
});

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

/**
 * Creates directories whose paths exceed the system's limit.
 */
function tooDeepFor(folder: string): void {
  const half = Array.from({ length: 10 }, () => 'n'.repeat(250));
  const outer = join(folder, ...half);
  const inner = join(folder, 'inner');
  mkdirSync(outer, { recursive: true });
  mkdirSync(join(inner, ...half), { recursive: true });
  renameSync(inner, join(outer, 'inner'));
}
