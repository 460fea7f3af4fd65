import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { randomIds } from '../../support/ids.ts';
import { SharedArtifactFiles } from '../flash/artifact-files.ts';
import { SharedFiles } from './shared-files.ts';

const NAME = 'flash/app/build.tar.gz';
/** More than one part. */
const CONTENT = Buffer.alloc(7_000_000, 'content');

describe('files of several servers', () => {
  const root = mkdtempSync(join(tmpdir(), 'berth-shared-files-'));
  let context: ServiceContext;
  before(async () => {
    context = await createServiceContext();
  });
  after(async () => {
    await context.close();
    rmSync(root, { recursive: true });
  });

  /** A server with a disk of its own, on the same database. */
  function server(name: string) {
    const folder = join(root, name, 'copies');
    const shared = new SharedFiles({
      store: context.store.sharedFiles,
      folder,
      clock: context.clock,
      ids: randomIds,
      onProblem: (what, error) => assert.fail(`${what}: ${String(error)}`),
    });
    const upload = async (content: Buffer | string): Promise<void> => {
      const path = join(root, name, 'upload');
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content);
      await shared.add(NAME, path);
    };
    return { folder, shared, upload };
  }
  const read = async ({ shared }: { shared: SharedFiles }): Promise<string | undefined> => {
    const path = await shared.file(NAME);
    return path === undefined ? undefined : readFileSync(path, 'utf8');
  };

  test('each server has what was added at another, as one copy however many ask at once', async () => {
    const [one, two] = [server('one'), server('two')];
    await one.upload(CONTENT);
    assert.equal(await two.shared.size(NAME), CONTENT.length);
    const paths = await Promise.all([two.shared.file(NAME), two.shared.file(NAME)]);
    assert.equal(paths[0], paths[1]);
    assert.deepEqual(readFileSync(paths[0] ?? ''), CONTENT);
    assert.deepEqual(readdirSync(dirname(paths[0] ?? '')), ['build.tar.gz']);
  });

  test('a later content replaces the earlier one everywhere', async () => {
    const [one, two] = [server('one'), server('two')];
    await one.upload('later');
    assert.deepEqual([await read(one), await read(two)], ['later', 'later']);
    const [found] = await context.store.sharedFiles.list('flash/');
    assert.equal(found?.parts, 1);
  });

  test('a file that lost a part is not taken for whole', async () => {
    const { sharedFiles } = context.store;
    await sharedFiles.addPart('broken', 0, Buffer.from('half').toString('base64'), 0);
    await sharedFiles.publish({
      name: 'flash/other/x.tar.gz',
      version: 'broken',
      size: 8,
      parts: 2,
      createdAt: 0,
    });
    const { shared, folder } = server('three');
    await assert.rejects(shared.file('flash/other/x.tar.gz'), /has 8 bytes, and 4 could be read/);
    assert.deepEqual(readdirSync(join(folder, 'broken')), []);
    await shared.removeAll('flash/other/');
  });

  test('copies of what was deleted go with a sweep, once they are old, and so do uploads that never ended', async () => {
    const [one, two] = [server('one'), server('two')];
    await one.shared.removeAll('flash/');
    assert.equal(await read(two), undefined);
    const { sharedFiles } = context.store;
    await sharedFiles.addPart('begun', 0, '', context.clock.now() - 25 * 3_600_000);
    await two.shared.sweep();
    assert.notDeepEqual(readdirSync(two.folder), []);
    assert.equal(await sharedFiles.part('begun', 0), undefined);
    for (const version of readdirSync(two.folder)) utimesSync(join(two.folder, version), 1, 1);
    await two.shared.sweep();
    assert.deepEqual(readdirSync(two.folder), []);
  });

  test('builds of a time when they were on the disk of one server reach the others at its start', async () => {
    const [one, two] = [server('one'), server('two')];
    const artifacts = join(root, 'one', 'artifacts');
    mkdirSync(join(artifacts, dirname(NAME)), { recursive: true });
    writeFileSync(join(artifacts, NAME), 'old');
    writeFileSync(join(artifacts, `${NAME}.request.part`), 'begun');
    const files = new SharedArtifactFiles(artifacts, one.shared);
    await files.shareLocal();
    assert.deepEqual([await read(one), await read(two)], ['old', 'old']);
    assert.equal((await context.store.sharedFiles.list('')).length, 1);
    await files.removeAll('flash/app');
    assert.equal(existsSync(join(artifacts, 'flash/app')), false);
    assert.equal(await read(one), undefined);
  });
});
