import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import type { CommandResult } from '../packages/testing/src/berth-command.ts';
import { createS3Client } from '../packages/testing/src/s3-test-client.ts';
import type { S3Key } from '../packages/testing/src/s3-test-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

const MB = 1024 ** 2;
interface Volume {
  id: string;
  name: string;
  size: number;
  used: number;
}
interface Files {
  files: { path: string; kind: string; size: number | null }[];
}

describe('volumes on the command line', () => {
  const fixture = serverFixture('sqlite');
  let ann: TestAccount;
  let here: string;
  let volume: Volume;
  const berth = <T = Record<string, unknown>>(...args: string[]): Promise<CommandResult<T>> =>
    runBerth<T>(args, { BERTH_URL: fixture.server.url, BERTH_API_KEY: ann.key });
  const works = async <T = Record<string, unknown>>(...args: string[]): Promise<T> => {
    const ran = await berth<T>(...args);
    assert.equal(ran.code, 0, ran.stderr);
    return ran.json;
  };
  const refused = async (...args: string[]): Promise<string> => {
    const ran = await berth(...args);
    assert.notEqual(ran.code, 0);
    return ran.stderr;
  };
  before(async () => {
    ann = await fixture.createAccount('ann');
    here = mkdtempSync(join(tmpdir(), 'berth-volume-cli-'));
  });
  after(() => rmSync(here, { recursive: true }));

  test('are made, listed, shown, grown and removed, by name or id', async () => {
    volume = await works<Volume>('volume', 'create', 'data', '--size', '20');
    assert.deepEqual([volume.name, volume.size, volume.used], ['data', 20, 0]);
    assert.deepEqual(
      (await works<{ networkVolumes: Volume[] }>('volume', 'ls')).networkVolumes.map(({ id }) => id),
      [volume.id],
    );
    assert.equal((await works<Volume>('volume', 'get', 'data')).id, volume.id);
    assert.equal((await works<Volume>('volume', 'resize', volume.id, '30GB')).size, 30);
    assert.match(await refused('volume', 'resize', 'data', '5'), /cannot shrink|minimum|at least/);
    assert.match(await refused('volume', 'resize', 'data', 'big'), /allowed: a whole number of GB/);
    assert.match(await refused('volume', 'get', 'dtaa'), /no network volume "dtaa"; did you mean "data"\?/);
    await works('volume', 'create', 'twin');
    const twin = await works<Volume>('volume', 'create', 'twin');
    assert.match(await refused('volume', 'get', 'twin'), /2 network volumes are called "twin"/);
    assert.match(await refused('volume', 'rm', twin.id), /--yes is needed/);
    await works('volume', 'rm', twin.id, '--yes');
    assert.match(await refused('volume', 'rm', twin.id, '-y'), /no network volume/);
  });

  test('files and folders are copied there and back, as they are', async () => {
    const tree = join(here, 'tree');
    mkdirSync(join(tree, 'deep', 'deeper'), { recursive: true });
    mkdirSync(join(tree, 'empty'));
    const contents: Record<string, Buffer> = {
      'a.txt': Buffer.from('a'),
      'deep/ünï ☃+&%.bin': randomBytes(100_000),
      'deep/deeper/none': Buffer.alloc(0),
    };
    for (const [path, content] of Object.entries(contents)) writeFileSync(join(tree, path), content);
    symlinkSync('a.txt', join(tree, 'link'));
    symlinkSync('deep', join(tree, 'folder-link'));
    const sent = await berth<{ files: number; bytes: number }>('volume', 'cp', tree, 'data:/');
    assert.deepEqual([sent.code, sent.json.files, sent.json.bytes], [0, 4, 100_002]);
    assert.match(sent.stderr, /left out[^:]*: folder-link/);
    assert.deepEqual(
      (await works<Files>('volume', 'ls', 'data:/tree')).files.map(({ path, kind }) => [path, kind]),
      [
        ['tree/a.txt', 'file'],
        ['tree/link', 'file'],
        ['tree/deep/', 'folder'],
        ['tree/empty/', 'folder'],
      ],
    );
    assert.equal((await works<Files>('volume', 'ls', 'data', '-r')).files.length, 5);
    assert.equal((await works<Volume>('volume', 'get', 'data')).used, 100_002);
    const back = join(here, 'back');
    assert.equal((await works<{ files: number }>('volume', 'cp', 'data:/tree', back)).files, 4);
    for (const [path, content] of Object.entries(contents))
      assert.deepEqual(readFileSync(join(back, path)), content);
    assert.deepEqual(readdirSync(join(back, 'empty')), []);
    assert.deepEqual(readdirSync(back).sort(), ['a.txt', 'deep', 'empty', 'link']);
    await works('volume', 'cp', join(tree, 'a.txt'), 'data:renamed.txt');
    await works('volume', 'cp', 'data:/renamed.txt', `${here}/`);
    assert.equal(readFileSync(join(here, 'renamed.txt'), 'utf8'), 'a');
    await works('volume', 'cp', join(tree, 'a.txt'), 'data:/tree/deep');
    assert.equal((await works<Files>('volume', 'ls', 'data:/tree/deep/a.txt')).files.length, 1);
    assert.match(await refused('volume', 'cp', 'data:/nothing', here), /nothing at \/nothing/);
    assert.match(
      await refused('volume', 'cp', join(here, 'nothing'), 'data:/'),
      /there is no file or folder .*nothing/,
    );
    assert.match(await refused('volume', 'cp', here, back), /must be VOLUME:\/path/);
    assert.match(await refused('volume', 'ls', 'data:/nothing'), /nothing at/);
  });

  test('names as long as they may be are copied, and those that are no text are left out', async () => {
    const odd = join(here, 'odd');
    mkdirSync(odd);
    // The same content under two names that differ at their end alone.
    const long = ['一', '二'].map((end) => `${'文'.repeat(84)}${end}`).sort();
    for (const name of long) writeFileSync(join(odd, name), 'x'.repeat(100_000));
    writeFileSync(Buffer.concat([Buffer.from(`${odd}/`), Buffer.from([0x78, 0xff])]), 'x');
    const sent = await berth<{ files: number }>('volume', 'cp', odd, 'data:/odd');
    assert.deepEqual([sent.code, sent.json.files], [0, 2], sent.stderr);
    assert.match(sent.stderr, /left out[^:]*: x\ufffd/);
    const back = join(here, 'odd-again');
    await works('volume', 'cp', 'data:/odd', back);
    assert.deepEqual(readdirSync(back).sort(), long);
    for (const name of long) assert.equal(readFileSync(join(back, name), 'utf8').length, 100_000);
    await works('volume', 'rm', 'data:/odd', '-y');
  });

  test('files in a volume are removed, one or a whole folder', async () => {
    await works('volume', 'rm', 'data:/renamed.txt', '-y');
    assert.equal((await works<{ files: number }>('volume', 'rm', 'data:/tree', '-y')).files, 5);
    assert.deepEqual((await works<Files>('volume', 'ls', 'data:/')).files, []);
    assert.match(await refused('volume', 'rm', 'data:/', '-y'), /without a colon/);
  });

  test('a large file goes in parts, and one that was broken off goes on where it was', async () => {
    const content = randomBytes(40 * MB);
    writeFileSync(join(here, 'large'), content);
    const key = await works<S3Key>('key', 'create', '--s3');
    const s3 = createS3Client(fixture.server.url, key);
    const source = createHash('sha256')
      .update(JSON.stringify([hostname(), join(here, 'large')]))
      .digest('hex');
    const begun = await fetch(`${fixture.server.url}/s3/${volume.id}/large?uploads`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ann.key}`, 'x-berth-source': source },
    });
    const [, UploadId] = /<UploadId>(.*)<\/UploadId>/.exec(await begun.text()) ?? [];
    await s3.send(
      new UploadPartCommand({
        Bucket: volume.id,
        Key: 'large',
        UploadId,
        PartNumber: 1,
        Body: content.subarray(0, 16 * MB),
      }),
    );
    await s3.send(
      new UploadPartCommand({
        Bucket: volume.id,
        Key: 'large',
        UploadId,
        PartNumber: 2,
        Body: randomBytes(16 * MB),
      }),
    );
    await works('volume', 'cp', join(here, 'large'), 'data:/');
    assert.equal((await s3.send(new ListMultipartUploadsCommand({ Bucket: volume.id }))).Uploads, undefined);
    const target = join(here, 'fetched');
    const etag = md5Of(content);
    writeFileSync(join(here, `.fetched.${etag}.part`), content.subarray(0, 5 * MB));
    await works('volume', 'cp', 'data:/large', target);
    assert.ok(readFileSync(target).equals(content));
    assert.deepEqual(
      readdirSync(here).filter((name) => name.endsWith('.part')),
      [],
    );
    await s3.send(new PutObjectCommand({ Bucket: volume.id, Key: 'small', Body: 'x' }));
    assert.equal((await works<{ s3Keys: object[] }>('key', 'ls')).s3Keys.length, 1);
    await works('key', 'revoke', key.accessId);
    await assert.rejects(s3.send(new PutObjectCommand({ Bucket: volume.id, Key: 'small', Body: 'x' })), {
      name: 'InvalidAccessKeyId',
    });
    s3.destroy();
  });

  test('a large file leaves alone what another client sends under the same key', async () => {
    writeFileSync(join(here, 'contended'), randomBytes(17 * MB));
    const key = await works<S3Key>('key', 'create', '--s3');
    const s3 = createS3Client(fixture.server.url, key);
    const other = { Bucket: volume.id, Key: 'contended' };
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand(other));
    const { ETag } = await s3.send(
      new UploadPartCommand({ ...other, UploadId, PartNumber: 1, Body: 'of another' }),
    );
    await works('volume', 'cp', join(here, 'contended'), 'data:/');
    await s3.send(
      new CompleteMultipartUploadCommand({
        ...other,
        UploadId,
        MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] },
      }),
    );
    assert.equal((await s3.send(new HeadObjectCommand(other))).ContentLength, 'of another'.length);
    s3.destroy();
  });

  test('every command has a help text', async () => {
    for (const name of ['create', 'ls', 'get', 'resize', 'cp', 'rm'])
      assert.match(
        (await berth('volume', name, '--help')).stdout,
        new RegExp(`^Usage: berth volume ${name}`),
      );
  });
});

/** The ETag of 40 MB in parts of 16 MB. */
function md5Of(content: Buffer): string {
  const parts = [0, 16, 32].map((from) =>
    createHash('md5')
      .update(content.subarray(from * MB, (from + 16) * MB))
      .digest(),
  );
  return `${createHash('md5').update(Buffer.concat(parts)).digest('hex')}-3`;
}
