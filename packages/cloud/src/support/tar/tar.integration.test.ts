import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { pack } from 'tar-stream';
import type { Headers } from 'tar-stream';
import { packTree } from './tar-pack.ts';
import { readTar, TarError } from './tar-read.ts';
import { unpackTar } from './tar-unpack.ts';

const all = async (source: AsyncIterable<Uint8Array>): Promise<Buffer> =>
  Buffer.concat(await Array.fromAsync(source));
async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
/** A tar archive of these entries, without content. */
async function archiveOf(...entries: (Partial<Headers> & { name: string })[]): Promise<Buffer> {
  const archive = pack();
  for (const entry of entries) archive.entry({ mtime: new Date(0), ...entry }, '');
  archive.finalize();
  return all(archive as AsyncIterable<Uint8Array>);
}
/** Writes a field of the first header and corrects its checksum. */
function withField(archive: Buffer, at: number, bytes: Buffer): Buffer {
  const changed = Buffer.from(archive);
  bytes.copy(changed, at);
  changed.fill(' ', 148, 156);
  const sum = changed.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return changed;
}

describe('tar', () => {
  let here: string;
  before(() => {
    here = mkdtempSync(join(tmpdir(), 'berth-tar-'));
    const tree = join(here, 'tree');
    mkdirSync(join(tree, 'deep', 'n'.repeat(150), 'ünï ☃'), { recursive: true });
    mkdirSync(join(tree, 'empty'));
    writeFileSync(join(tree, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
    writeFileSync(join(tree, 'deep', 'n'.repeat(150), 'ünï ☃', 'file.bin'), randomBytes(700_001));
    writeFileSync(join(tree, 'none'), '');
    symlinkSync('run.sh', join(tree, 'link'));
  });
  after(() => rmSync(here, { recursive: true }));

  const same = (one: string, other: string): void => {
    assert.equal(execFileSync('diff', ['-r', '--no-dereference', one, other]).toString(), '');
    assert.equal(statSync(join(other, 'run.sh')).mode & 0o777, 0o755);
    assert.equal(readlinkSync(join(other, 'link')), 'run.sh');
  };

  test('GNU tar unpacks what is packed here, and the other way round', async () => {
    writeFileSync(join(here, 'ours.tar'), await all(packTree(join(here, 'tree'), 'tree')));
    mkdirSync(join(here, 'by-tar'));
    execFileSync('tar', ['-xf', join(here, 'ours.tar'), '-C', join(here, 'by-tar')]);
    same(join(here, 'tree'), join(here, 'by-tar', 'tree'));
    for (const format of ['gnu', 'pax', 'ustar']) {
      try {
        execFileSync('tar', ['--format', format, '-cf', join(here, 'theirs.tar'), '-C', here, 'tree'], {
          stdio: 'ignore',
        });
      } catch {
        // One of the forms cannot hold every name, and says so.
        assert.equal(format, 'ustar');
        continue;
      }
      mkdirSync(join(here, `of-${format}`));
      await unpackTar(join(here, `of-${format}`), inPieces(readFileSync(join(here, 'theirs.tar')), 10_007));
      same(join(here, 'tree'), join(here, `of-${format}`, 'tree'));
    }
  });

  test('gives the same entries however the stream is split', async () => {
    const packed = await all(packTree(join(here, 'tree'), 'tree'));
    const entriesOf = async (size: number): Promise<unknown[]> => {
      const found = [];
      for await (const { name, type, content } of readTar(inPieces(packed, size)))
        found.push([name, type, type === 'file' ? (await all(content)).toString('base64').length : 0]);
      return found;
    };
    const whole = await entriesOf(packed.length);
    await checkProperty(
      fc.asyncProperty(fc.integer({ min: 200, max: 5_000 }), async (size) =>
        assert.deepEqual(await entriesOf(size), whole),
      ),
      20,
    );
    const names = (await Array.fromAsync(readTar(inPieces(packed, 4_096)))).map(({ name }) => name);
    assert.equal(names.length, whole.length);
  });

  test('keeps the longest names, and leaves out names that are not UTF-8', async () => {
    const [from, to] = [join(here, 'odd'), join(here, 'odd-again')];
    mkdirSync(from);
    const long = '文'.repeat(85);
    writeFileSync(join(from, long), 'x');
    writeFileSync(Buffer.concat([Buffer.from(`${from}/`), Buffer.from([0x78, 0xff])]), 'x');
    await unpackTar(to, packTree(from, 'odd'));
    assert.deepEqual(readdirSync(join(to, 'odd')), [long]);
  });

  test('refuses an archive that is damaged, incomplete, or leads out of the folder', async () => {
    const packed = await all(packTree(join(here, 'tree'), 'tree'));
    const refuse = (bytes: Buffer) =>
      assert.rejects(unpackTar(join(here, 'refused'), inPieces(bytes, 1_000)), TarError);
    await refuse(packed.subarray(0, packed.length - 1_500));
    await refuse(packed.subarray(0, packed.length - 1_024));
    await refuse(packed.subarray(0, 300_000));
    await refuse(Buffer.alloc(0));
    await refuse(Buffer.from('not an archive'.repeat(100)));
    await refuse(await archiveOf({ name: '../out' }));
    await refuse(await archiveOf({ name: 'a/../../out' }));
    await refuse(await archiveOf({ name: 'way', type: 'symlink', linkname: '/etc' }, { name: 'way/out' }));
    await refuse(await archiveOf({ name: 'hard', type: 'link', linkname: '../../etc/passwd' }));
    await unpackTar(join(here, 'refused'), inPieces(await archiveOf({ name: '/rooted/inside' }), 100));
    assert.ok(statSync(join(here, 'refused', 'rooted', 'inside')).isFile());
  });

  test('refuses invalid sizes and endless headers', async () => {
    const archive = await archiveOf({ name: 'file' });
    const refuse = (source: AsyncIterable<Uint8Array>) =>
      assert.rejects(unpackTar(join(here, 'sizes'), source), TarError);
    const size = (...bytes: number[]): Buffer =>
      withField(archive, 124, Buffer.concat([Buffer.from(bytes), Buffer.alloc(12 - bytes.length)]));
    // A negative number and one of 88 bits, both binary, and a text.
    await refuse(inPieces(withField(archive, 124, Buffer.alloc(12, 0xf0).fill(0xff, 0, 8)), 512));
    await refuse(inPieces(size(0x80, 1), 512));
    await refuse(inPieces(withField(archive, 124, Buffer.from('none\0')), 512));
    // A pax header of 8 GB that is really sent.
    const pax = withField(withField(archive, 156, Buffer.from('x')), 124, Buffer.from('77777777777\0'));
    let sent = 0;
    await refuse(
      (async function* () {
        yield pax.subarray(0, 512);
        for (; sent < 100_000_000; sent += 65_536) yield Buffer.alloc(65_536, 0x41);
      })(),
    );
    assert.ok(sent < 4_000_000, String(sent));
  });

  test('passes on an error of the source', async () => {
    const broken = new Error('the connection broke');
    await assert.rejects(
      unpackTar(
        join(here, 'broken'),
        (async function* () {
          yield (await archiveOf({ name: 'file' })).subarray(0, 512);
          throw broken;
        })(),
      ),
      (error) => error === broken,
    );
  });

  test('keeps the mode 0 of a file', async () => {
    mkdirSync(join(here, 'locked'));
    writeFileSync(join(here, 'locked', 'file'), '', { mode: 0 });
    await unpackTar(join(here, 'unlocked'), packTree(join(here, 'locked'), 'locked'));
    assert.equal(statSync(join(here, 'unlocked', 'locked', 'file')).mode & 0o777, 0);
  });
});
