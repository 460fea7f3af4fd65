import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import type { Caller } from '../../domain/caller.ts';
import { randomIds } from '../../support/ids.ts';
import { ImageSnapshots } from './image-snapshots.ts';
import { Images } from './images.ts';
import { SharedImages } from './shared-images.ts';

describe('deployed folders of several servers', () => {
  const root = mkdtempSync(join(tmpdir(), 'berth-shared-images-'));
  let context: ServiceContext;
  let ann: Caller;
  before(async () => {
    context = await createServiceContext();
    ann = await context.account('ann');
  });
  after(async () => {
    await context.close();
    rmSync(root, { recursive: true });
  });

  /** A server with a disk of its own, on the same database. */
  function server(name: string, isShared = true) {
    const folder = join(root, name);
    const snapshots = new ImageSnapshots(folder);
    const shared = new SharedImages({
      archives: context.store.imageArchives,
      snapshots,
      ids: randomIds,
      onProblem: (what, error) => assert.fail(`${what}: ${String(error)}`),
    });
    return {
      folder,
      shared,
      images: new Images(context, { folder, snapshots, ...(isShared && { shared }) }),
    };
  }
  const files = (content: string) => [
    { path: 'handler.js', content: Buffer.from(content), executable: false },
    // More than one part, also compressed.
    { path: 'bin/model', content: Buffer.alloc(5_000_000, content), executable: true },
  ];

  test('each server has what was deployed on another, and loses what was deleted there', async () => {
    const [one, two] = [server('one'), server('two')];
    const { image, digest } = await one.images.store(ann, 'app', files('first'));
    await two.shared.sync();
    assert.deepEqual(await two.images.list(ann), await one.images.list(ann));
    const folder = join(two.folder, `${ann.accountId}.app`, digest);
    assert.equal(readFileSync(join(folder, 'handler.js'), 'utf8'), 'first');
    assert.equal(statSync(join(folder, 'bin/model')).mode & 0o777, 0o755);
    assert.deepEqual(await two.images.remove(ann, 'app'), { removed: [image], kept: [] });
    await one.shared.sync();
    assert.deepEqual(await one.images.list(ann), []);
    assert.deepEqual(await context.store.imageArchives.list(), []);
  });

  test('a request and the sync with other servers may delete a folder at the same time', async () => {
    const { images, folder } = server('both', false);
    const { digest } = await images.store(ann, 'twice', files('both'));
    const snapshots = new ImageSnapshots(folder);
    const name = `${ann.accountId}.twice`;
    await Promise.all(['a', 'b'].map((unique) => snapshots.remove(name, digest, unique)));
    assert.deepEqual(await snapshots.list(name), []);
  });

  test('what a server had before there were others is shared at its start', async () => {
    await server('old', false).images.store(ann, 'kept', files('old'));
    await server('old').shared.sync();
    const other = server('other');
    await other.shared.sync();
    assert.equal((await other.images.list(ann)).length, 1);
  });
});
