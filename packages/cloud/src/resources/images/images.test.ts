import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { BerthError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { sampleEndpoint } from '../endpoints/endpoint.fixture.ts';
import { auditEntry } from '../resource-context.ts';
import type { ImageFile } from '../../domain/images/image-files.ts';
import { Images } from './images.ts';

const file = (path: string, content = '', executable = false): ImageFile => ({
  path,
  content: Buffer.from(content),
  executable,
});
const failsWith = (code: string, words: RegExp) => (error: unknown) =>
  error instanceof BerthError && error.code === code && words.test(error.message);

describe('images', () => {
  let context: ServiceContext;
  let folder: string;
  let images: Images;
  let ann: Caller;
  let bob: Caller;
  const alsoUsed = new Set<string>();

  before(async () => {
    context = await createServiceContext();
    folder = join(await mkdtemp(join(tmpdir(), 'berth-images-')), 'images');
    images = new Images(context, { folder, otherImagesInUse: () => Promise.resolve(alsoUsed) });
    ann = await context.account('ann');
    bob = await context.account('bob');
  });
  after(async () => {
    await context.close();
    await rm(join(folder, '..'), { recursive: true });
  });

  const use = (caller: Caller, image: string): Promise<{ id: string }> =>
    context.store.endpoints.insert(caller.accountId, {}, () => {
      const record = { ...sampleEndpoint, id: context.ids.resource(), accountId: caller.accountId, image };
      return { record, audit: auditEntry(context, caller, 'create', 'endpoint', record.id) };
    });

  test('are written unchanged, to the path of their name', async () => {
    const stored = await images.store(context.root, 'echo', [
      file('handler.ts', 'export default 1'),
      file('bin/run', '#!/bin/sh', true),
    ]);
    assert.equal(stored.image, `local/echo:${stored.digest}`);
    assert.deepEqual([stored.files, stored.size], [2, 25]);
    const place = join(folder, 'echo', stored.digest);
    assert.equal(await readFile(join(place, 'handler.ts'), 'utf8'), 'export default 1');
    assert.equal((await stat(join(place, 'bin/run'))).mode & 0o777, 0o755);
    assert.equal((await stat(join(place, 'handler.ts'))).mode & 0o777, 0o644);
  });

  test('with the same files are one image, also when uploaded at the same time', async () => {
    const uploads = await Promise.all(
      Array.from({ length: 8 }, () => images.store(ann, 'twin', [file('handler.js', 'same')])),
    );
    assert.equal(new Set(uploads.map(({ image }) => image)).size, 1);
    context.clock.advance(1000);
    const again = await images.store(ann, 'twin', [file('handler.js', 'same')]);
    assert.equal(again.createdAt, uploads[0]?.createdAt);
    assert.equal((await images.list(ann)).length, 1);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.startsWith('.')),
      [],
    );
  });

  test('belong to one account: others can neither see nor delete them', async () => {
    const stored = await images.store(bob, 'twin', [file('handler.js', 'of bob')]);
    assert.equal(stored.image, `local/${bob.accountId}.twin:${stored.digest}`);
    assert.deepEqual(
      (await images.list(bob)).map(({ image }) => image),
      [stored.image],
    );
    assert.ok((await images.list(ann)).every(({ image }) => image !== stored.image));
    assert.ok((await images.list(context.root)).every(({ name }) => name === 'echo'));
    await assert.rejects(images.remove(ann, 'echo'), failsWith('not-found', /image "echo" not found/));
    for (const name of [`${bob.accountId}.twin`, '..', '', 'TWIN'])
      await assert.rejects(images.remove(context.root, name), failsWith('not-found', /not found/));
  });

  test('that are invalid leave nothing on disk', async () => {
    await assert.rejects(
      images.store(ann, 'bad', [file('../../out', 'x')]),
      failsWith('rule', /must not have an empty part, "." or ".."/),
    );
    await assert.rejects(images.store(ann, 'Bad', [file('a')]), failsWith('rule', /lower-case/));
    await assert.rejects(images.store(ann, 'bad', []), failsWith('rule', /at least one file/));
    assert.ok(!(await readdir(folder)).some((name) => name.includes('bad')));
  });

  test('are listed newest first, with the endpoints that run them', async () => {
    context.clock.advance(1000);
    const newer = await images.store(ann, 'app', [file('handler.js', '1')]);
    const endpoint = await use(ann, newer.image);
    const listed = await images.list(ann);
    assert.deepEqual(
      listed.map(({ name, endpoints }) => [name, endpoints]),
      [
        ['app', [endpoint.id]],
        ['twin', []],
      ],
    );
  });

  test('are deleted only if nothing uses them', async () => {
    const [one, two, three] = await Promise.all(
      ['1', '2', '3'].map((content) => images.store(bob, 'many', [file('handler.js', content)])),
    );
    assert.ok(one !== undefined && two !== undefined && three !== undefined);
    await use(bob, one.image);
    alsoUsed.add(two.image);
    assert.deepEqual(await images.remove(bob, 'many'), {
      removed: [three.image],
      kept: [one, two].map(({ image }) => image).sort(),
    });
    await assert.rejects(stat(join(folder, `${bob.accountId}.many`, three.digest)));
    await assert.rejects(images.remove(bob, 'many'), failsWith('in-use', /in use/));
    const back = await images.store(bob, 'many', [file('handler.js', '3')]);
    assert.equal(back.image, three.image);
  });

  test('have one audit entry for creation and one for deletion', async () => {
    const entries = async (): Promise<unknown[]> =>
      (await context.store.audit.list(ann.accountId, { limit: 100 }))
        .filter(({ resource }) => resource === 'image')
        .map(({ action, resourceId, keyId, changes }) => ({ action, resourceId, keyId, changes }));
    const before = await entries();
    const uploads = await Promise.all(
      Array.from({ length: 4 }, () => images.store(ann, 'told', [file('handler.js', '12345')])),
    );
    const image = uploads[0]?.image;
    await images.store(ann, 'told', [file('handler.js', '12345')]);
    await assert.rejects(images.store(ann, 'told', []), BerthError);
    const made = {
      action: 'create',
      resourceId: image,
      keyId: ann.keyId,
      changes: [
        { field: 'files', to: 1 },
        { field: 'size', to: 5 },
      ],
    };
    assert.deepEqual(await entries(), [made, ...before]);
    await images.remove(ann, 'told');
    assert.deepEqual(await entries(), [
      { action: 'delete', resourceId: image, keyId: ann.keyId, changes: [] },
      made,
      ...before,
    ]);
    assert.deepEqual((await context.store.accounts.find(ann.accountId))?.sshKeys, []);
  });

  test('that nothing has named for long are deleted; an upload counts from its last time', async () => {
    const cat = await context.account('cat');
    const used = await images.store(cat, 'used', [file('handler.js', 'used')]);
    await use(cat, used.image);
    const again = await images.store(cat, 'again', [file('handler.js', 'again')]);
    const old = await images.store(cat, 'old', [file('handler.js', 'old')]);
    context.clock.advance(1000);
    const limit = context.clock.now();
    await images.store(cat, 'again', [file('handler.js', 'again')]);
    const removed = await images.expire(limit);
    assert.ok(removed.includes(old.image));
    assert.deepEqual(
      (await images.list(cat)).map(({ image }) => image).sort(),
      [again.image, used.image].sort(),
    );
    assert.deepEqual(
      (await images.expire(limit)).filter((image) => image === old.image),
      [],
    );
  });

  test('that a stopped server did not finish are deleted later', async () => {
    const stale = join(folder, '.draft-stale');
    const fresh = join(folder, '.draft-fresh');
    await mkdir(stale);
    await mkdir(fresh);
    const now = context.clock.now() / 1000;
    await utimes(stale, now - 7200, now - 7200);
    await utimes(fresh, now, now);
    await images.store(ann, 'after', [file('handler.js', 'x')]);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.startsWith('.')),
      ['.draft-fresh'],
    );
    await rm(fresh, { recursive: true });
  });
});
