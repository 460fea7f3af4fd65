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
import { tarHeader, packTree } from './tar-pack.ts';
import { readTar, TarError } from './tar-read.ts';
import { unpackTar } from './tar-unpack.ts';

const all = async (source: AsyncIterable<Uint8Array>): Promise<Buffer> =>
  Buffer.concat(await Array.fromAsync(source));
async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
const file = (name: string, more: object = {}) =>
  tarHeader({ name, type: 'file', size: 0, mode: 0o644, modifiedAt: 0, target: '', ...more });

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

  test('what is packed here is unpacked by the usual program, and the other way round', async () => {
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

  test('however it is cut into pieces, the same comes out', async () => {
    const packed = await all(packTree(join(here, 'tree'), 'tree'));
    const told = async (size: number): Promise<unknown[]> => {
      const found = [];
      for await (const { name, type, content } of readTar(inPieces(packed, size)))
        found.push([name, type, type === 'file' ? (await all(content)).toString('base64').length : 0]);
      return found;
    };
    const whole = await told(packed.length);
    await checkProperty(
      fc.asyncProperty(fc.integer({ min: 200, max: 5_000 }), async (size) =>
        assert.deepEqual(await told(size), whole),
      ),
      20,
    );
    const names = (await Array.fromAsync(readTar(inPieces(packed, 4_096)))).map(({ name }) => name);
    assert.equal(names.length, whole.length);
  });

  test('names as long as they may be are unpacked, and those that are no text are left out', async () => {
    const [from, to] = [join(here, 'odd'), join(here, 'odd-again')];
    mkdirSync(from);
    const long = '文'.repeat(85);
    writeFileSync(join(from, long), 'x');
    writeFileSync(Buffer.concat([Buffer.from(`${from}/`), Buffer.from([0x78, 0xff])]), 'x');
    await unpackTar(to, packTree(from, 'odd'));
    assert.deepEqual(readdirSync(join(to, 'odd')), [long]);
  });

  test('an archive that is damaged, cut off, or leads elsewhere is refused', async () => {
    const packed = await all(packTree(join(here, 'tree'), 'tree'));
    const refuse = (bytes: Buffer) =>
      assert.rejects(unpackTar(join(here, 'refused'), inPieces(bytes, 1_000)), TarError);
    await refuse(packed.subarray(0, packed.length - 1_500));
    await refuse(packed.subarray(0, 300_000));
    await refuse(Buffer.from('not an archive'.repeat(100)));
    const end = Buffer.alloc(1_024);
    await refuse(Buffer.concat([file('../out'), end]));
    await refuse(Buffer.concat([file('a/../../out'), end]));
    await refuse(Buffer.concat([file('way', { kind: 'link', target: '/etc' }), file('way/out'), end]));
    await unpackTar(join(here, 'refused'), inPieces(Buffer.concat([file('/rooted/inside'), end]), 100));
    assert.ok(statSync(join(here, 'refused', 'rooted', 'inside')).isFile());
  });
});
