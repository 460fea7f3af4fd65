import assert from 'node:assert/strict';
import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { pack } from 'tar-stream';
import type { Headers } from 'tar-stream';
import type { InstanceEngine } from '../engine.ts';
import type { InstanceFiles } from '../instance-files.ts';
import { hasCode } from '../suite/engine-suite-fixture.ts';
import { openEngine } from './process-test-engine.ts';
import { supervisionProblem } from './supervise.ts';

const SECRET = 'the key of the house';

/** Several entries as one archive; files have the content `new`. */
function archiveOf(...entries: Headers[]): Readable {
  const archive = pack();
  for (const entry of entries) archive.entry(entry, entry.type === undefined ? 'new' : '');
  archive.finalize();
  return Readable.from(archive as AsyncIterable<Uint8Array>, { objectMode: false });
}

describe('copies to and from an instance', { skip: supervisionProblem() }, () => {
  let base: string;
  let outside: string;
  let root: string;
  let volume: string;
  let engine: InstanceEngine;
  let files: InstanceFiles;
  before(async () => {
    base = await mkdtemp(join(tmpdir(), 'berth-files-'));
    outside = join(base, 'outside');
    volume = join(base, 'volume');
    mkdirSync(outside);
    writeFileSync(join(outside, 'secret'), SECRET);
    engine = await openEngine(join(base, 'data'));
    assert.ok(engine.files);
    files = engine.files;
    await engine.start({
      id: 'pod',
      labels: {},
      image: 'local/shell',
      command: { entrypoint: ['sleep'], cmd: ['1000'] },
      env: {},
      ports: [],
      mounts: [{ source: volume, path: `/berth-volume-${process.pid}/data` }],
      cpu: 1,
      memoryInGb: 0.5,
      gpus: null,
      containerDiskInGb: 1,
    });
    root = join(base, 'data', 'instances', 'pod', 'root');
    // As the pod itself, or an earlier archive, could have made them.
    symlinkSync(outside, join(root, 'way'));
    symlinkSync(join(outside, 'secret'), join(root, 'file'));
    mkdirSync(join(root, 'real'));
    symlinkSync(outside, join(root, 'real', 'way'));
  });
  after(async () => {
    await engine.remove('pod');
    await engine.close();
    await rm(base, { recursive: true });
  });

  const read = async (path: string): Promise<string> =>
    (await buffer(await files.read('pod', path))).toString('latin1');

  test('read no file through a link', async () => {
    for (const path of ['way/secret', '/real/way/secret', 'real/../way/secret']) {
      assert.equal(await files.stat('pod', path), undefined, path);
      await assert.rejects(files.read('pod', path), hasCode('not-found'), path);
    }
    for (const path of ['file', 'way', 'real', '/']) {
      const archive = await read(path);
      assert.ok(!archive.includes(SECRET), path);
    }
    assert.equal((await files.stat('pod', 'file'))?.kind, 'other');
  });

  test('write no file through a link', async () => {
    await assert.rejects(files.write('pod', 'way', archiveOf({ name: 'x' })), hasCode('not-found'));
    for (const name of ['way/x', 'real/way/x', 'real/way/deep/x'])
      await assert.rejects(
        files.write('pod', '/', archiveOf({ name })),
        hasCode('rule', /link or a file/),
        name,
      );
    await assert.rejects(
      files.write(
        'pod',
        '/',
        archiveOf({ name: 'new', type: 'symlink', linkname: outside }, { name: 'new/x' }),
      ),
      hasCode('rule'),
    );
    await assert.rejects(
      files.write('pod', '/', archiveOf({ name: 'hard', type: 'link', linkname: 'way/secret' })),
      hasCode('rule'),
    );
    await assert.rejects(
      files.write('pod', '/', archiveOf({ name: 'hard', type: 'link', linkname: 'file' })),
      hasCode('rule'),
    );
    assert.ok(!existsSync(join(outside, 'x')) && !existsSync(join(outside, 'deep')));
  });

  test('replace a link instead of following it', async () => {
    await files.write('pod', '/', archiveOf({ name: 'file' }));
    assert.ok(lstatSync(join(root, 'file')).isFile());
    assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), SECRET);
  });

  test('reach a mount by its path, even if the instance replaces the link to it', async () => {
    const path = `/berth-volume-${process.pid}/data`;
    await files.write('pod', '/', archiveOf({ name: `${path}/deep/x` }));
    assert.equal(readFileSync(join(volume, 'deep', 'x'), 'utf8'), 'new');
    await rm(join(root, path));
    symlinkSync(outside, join(root, path));
    assert.ok((await read(`${path}/deep/x`)).includes('new'));
    await assert.rejects(files.read('pod', `${path}/secret`), hasCode('not-found'));
  });

  test('stay inside while a folder is swapped for a link again and again', async () => {
    const swapped = await engine.exec('pod', [
      'sh',
      '-c',
      `mkdir -p swap.folder; echo mine > swap.folder/secret; ln -s ${outside} swap.link; echo go
       while :; do mv swap.folder swap; mv swap swap.folder; mv swap.link swap; mv swap swap.link; done`,
    ]);
    try {
      for await (const _ of swapped.stdout) break;
      for (let round = 0; round < 150; round += 1) {
        const outcome = await read('swap/secret').catch(() => '');
        assert.ok(!outcome.includes(SECRET));
        await files.write('pod', '/', archiveOf({ name: 'swap/planted' })).catch(() => undefined);
      }
      assert.ok(!existsSync(join(outside, 'planted')));
    } finally {
      swapped.kill('SIGKILL');
      await swapped.exited;
    }
  });

  test('an instance that replaces its output with a link does not read it in its log', async () => {
    await engine.start({
      id: 'swapper',
      labels: {},
      image: 'local/shell',
      command: {
        entrypoint: ['sh', '-c'],
        cmd: [
          `s=${join(outside, 'secret')}; ln -s $s ../output/7.0; echo done; mv ../output ../away; ln ` +
            '-s $s ../output; exit 3',
        ],
      },
      env: {},
      ports: [],
      mounts: [],
      cpu: 1,
      memoryInGb: 0.5,
      gpus: null,
      containerDiskInGb: 1,
    });
    const lines = await Array.fromAsync(engine.logs('swapper', { follow: true }));
    assert.ok(!lines.some(({ line }) => line.includes(SECRET)));
    // A new start of Berth's engine opens the files again.
    await engine.close();
    engine = await openEngine(join(base, 'data'));
    const again = await Array.fromAsync(engine.logs('swapper'));
    assert.ok(!again.some(({ line }) => line.includes(SECRET)));
    await engine.remove('swapper');
  });
});
