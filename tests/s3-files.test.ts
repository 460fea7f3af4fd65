import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { createS3Key, createVolume, createS3Client } from '../packages/testing/src/s3-test-client.ts';
import type { S3Key } from '../packages/testing/src/s3-test-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

const GB = 1024 ** 3;

describe('the files of a network volume, as S3 and as pods see them', () => {
  const fixture = serverFixture('sqlite');
  let ann: TestAccount;
  let key: S3Key;
  let s3: S3Client;
  let Bucket: string;
  let folder: string;
  before(async () => {
    ann = await fixture.createAccount('ann');
    Bucket = await createVolume(ann);
    key = await createS3Key(ann);
    s3 = createS3Client(fixture.server.url, key);
    folder = join(fixture.database.data, 'volumes', Bucket);
    mkdirSync(folder, { recursive: true });
  });
  after(() => s3.destroy());

  const put = (Key: string, Body: string | Uint8Array) =>
    s3.send(new PutObjectCommand({ Bucket, Key, Body }));
  const text = async (Key: string): Promise<string | undefined> =>
    (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString();
  const keys = async (Prefix = ''): Promise<string[]> =>
    ((await s3.send(new ListObjectsV2Command({ Bucket, Prefix }))).Contents ?? []).map(
      ({ Key }) => Key ?? '',
    );
  const etag = async (Key: string): Promise<string | undefined> =>
    (await s3.send(new HeadObjectCommand({ Bucket, Key }))).ETag;

  test("an object is a plain file for pods, and a pod's file is an object whose ETag changes with it", async () => {
    await put('from/s3.txt', 'put over S3');
    assert.equal(readFileSync(join(folder, 'from', 's3.txt'), 'utf8'), 'put over S3');
    mkdirSync(join(folder, 'from pod'));
    writeFileSync(join(folder, 'from pod', 'a.txt'), 'written by a pod');
    assert.equal(await text('from pod/a.txt'), 'written by a pod');
    const first = await etag('from pod/a.txt');
    assert.match(first ?? '', /^"[0-9a-f]{32}-1"$/);
    assert.equal(await etag('from pod/a.txt'), first);
    writeFileSync(join(folder, 'from pod', 'a.txt'), 'written by a pod again');
    assert.notEqual(await etag('from pod/a.txt'), first);
    const before = await etag('from/s3.txt');
    writeFileSync(join(folder, 'from', 's3.txt'), 'then by a pod');
    assert.notEqual(await etag('from/s3.txt'), before);
    assert.equal(await text('from/s3.txt'), 'then by a pod');
  });

  test('a folder that a pod created stays when its last object is deleted, and is listed while empty', async () => {
    mkdirSync(join(folder, 'made', 'by', 'pod'), { recursive: true });
    await put('made/by/pod/file', 'x');
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'made/by/pod/file' }));
    assert.deepEqual(await keys('made'), ['made/by/pod/']);
    assert.ok(existsSync(join(folder, 'made', 'by', 'pod')));
  });

  test('links lead to files of the volume and nowhere else', async () => {
    const outside = join(fixture.database.data, 'outside');
    mkdirSync(join(outside, 'inner'), { recursive: true });
    writeFileSync(join(outside, 'secret'), 'not for you');
    await put('real/file', 'inside');
    symlinkSync('real', join(folder, 'folder-link'));
    symlinkSync('real/file', join(folder, 'file-link'));
    symlinkSync('../outside', join(folder, 'way-out'));
    mkdirSync(join(folder, '..dots'));
    symlinkSync('..dots', join(folder, 'to-dots'));
    symlinkSync(join(outside, 'secret'), join(folder, 'file-out'));
    symlinkSync('loop', join(folder, 'loop'));
    assert.deepEqual([await text('file-link'), await text('folder-link/file')], ['inside', 'inside']);
    for (const Key of ['way-out/secret', 'file-out', 'loop', 'way-out/'])
      await assert.rejects(text(Key), { name: 'NoSuchKey' }, Key);
    for (const Key of ['way-out/mine', 'way-out/inner/mine', 'way-out/new/mine', 'loop/mine'])
      await assert.rejects(put(Key, 'x'), { name: 'InvalidArgument' }, Key);
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'way-out/secret' }));
    await put('to-dots/file', 'a name that only begins like a way out');
    assert.deepEqual(readdirSync(join(folder, '..dots')), ['file']);
    await put('folder-link/second', 'through a link');
    assert.equal(readFileSync(join(folder, 'real', 'second'), 'utf8'), 'through a link');
    await put('folder-link/new/deep/third', 'in folders that were made behind a link');
    assert.equal(
      readFileSync(join(folder, 'real', 'new', 'deep', 'third'), 'utf8'),
      'in folders that were made behind a link',
    );
    symlinkSync('../../outside/made', join(folder, 'real', 'dangling'));
    for (const Key of [
      'folder-link/dangling/mine',
      'folder-link/dangling/deep/mine',
      'folder-link/file/mine',
    ])
      await assert.rejects(put(Key, 'x'), { name: 'InvalidArgument' }, Key);
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'folder-link/new/deep/third' }));
    assert.deepEqual(readdirSync(join(folder, 'real')).sort(), ['dangling', 'file', 'second']);
    await put('file-out', 'in place of the link');
    assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), 'not for you');
    assert.deepEqual(readdirSync(outside).sort(), ['inner', 'secret']);
    assert.deepEqual(readdirSync(join(outside, 'inner')), []);
    assert.deepEqual(
      (await keys()).filter((found) => /link|out|loop|real/.test(found)),
      ['file-link', 'file-out', 'real/file', 'real/second'],
    );
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'file-link' }));
    assert.equal(await text('real/file'), 'inside');
  });

  test('anything but a file is not found: a pipe is not waited for', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    await assert.rejects(text('pipe'), { name: 'NoSuchKey' });
    assert.deepEqual(await keys('pipe'), []);
  });

  test('an aborted upload leaves the old object and nothing else', async () => {
    await put('kept', 'as it was');
    const { hostname, port } = new URL(fixture.server.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `PUT /s3/${Bucket}/kept HTTP/1.1\r\nhost: ${hostname}:${port}\r\n` +
        `authorization: Bearer ${ann.key}\r\ncontent-length: 1000000\r\n\r\n`,
    );
    socket.write(randomBytes(300_000));
    const arriving = join(fixture.database.data, 'volumes', '.s3', Bucket, 'arriving');
    const waiting = AbortSignal.timeout(20_000);
    while (!existsSync(arriving) || readdirSync(arriving).length === 0) {
      waiting.throwIfAborted();
      await new Promise(setImmediate);
    }
    socket.destroy();
    while (readdirSync(arriving).length > 0) {
      waiting.throwIfAborted();
      await new Promise(setImmediate);
    }
    assert.equal(await text('kept'), 'as it was');
  });

  test('a file that shrinks while it is read ends the connection', async () => {
    const size = 64 * 1024 ** 2;
    const place = join(folder, 'shrinks');
    writeFileSync(place, '');
    truncateSync(place, size);
    const { hostname, port } = new URL(fixture.server.url);
    // The second request may meet a connection that is closed already: a reset ends it as well.
    const socket = connect(Number(port), hostname).on('error', () => undefined);
    const over = new Promise((resolve) => socket.once('close', resolve));
    const request =
      `GET /s3/${Bucket}/shrinks HTTP/1.1\r\nhost: ${hostname}:${port}\r\n` +
      `authorization: Bearer ${ann.key}\r\n\r\n`;
    socket.write(request);
    const [first] = (await once(socket, 'data')) as [Buffer];
    socket.pause();
    assert.match(first.toString('latin1'), /^HTTP\/1\.1 200 /);
    truncateSync(place, 1000);
    let read = 0;
    socket.on('data', (piece: Buffer) => (read += piece.length)).resume();
    socket.write(request);
    await over;
    assert.ok(read < size, `${read} bytes came`);
  });

  test('a refused copy closes its source', {
    skip: process.platform !== 'linux',
  }, async () => {
    await put('to be copied', 'x');
    const refused = s3.send(
      new CopyObjectCommand({
        Bucket,
        Key: 'copy',
        CopySource: `${Bucket}/to be copied`,
        MetadataDirective: 'REPLACE',
        Metadata: { large: 'm'.repeat(9_000) },
      }),
    );
    await assert.rejects(refused, { name: 'InvalidArgument' });
    const opened = `/proc/${fixture.server.process.pid}/fd`;
    const held = readdirSync(opened).flatMap((name) =>
      existsSync(join(opened, name)) ? [readlinkSync(join(opened, name))] : [],
    );
    assert.ok(held.length > 0);
    assert.deepEqual(
      held.filter((path) => path.endsWith('/to be copied')),
      [],
    );
  });

  test('many writers of one key: one of them wins, whole and with its ETag', async () => {
    const contents = Array.from({ length: 10 }, (_, index) => `${index}`.repeat(200_000));
    const put_ = await Promise.all(contents.map((content) => put('contended', content)));
    const read = await s3.send(new GetObjectCommand({ Bucket, Key: 'contended' }));
    const winner = contents.indexOf((await read.Body?.transformToString()) ?? '');
    assert.notEqual(winner, -1);
    assert.equal(read.ETag, put_[winner]?.ETag);
  });

  test('objects that come and go in one folder, at once, are never refused', async () => {
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        await put(`busy/deep/${index}`, 'x');
        await s3.send(new DeleteObjectCommand({ Bucket, Key: `busy/deep/${index}` }));
      }),
    );
    assert.deepEqual(await keys('busy'), []);
  });

  test('a volume takes no more than its size, counting what pods wrote, and more once it has grown', async () => {
    const small = await createVolume(ann, { name: 'small' });
    const place = join(fixture.database.data, 'volumes', small);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'sparse'), '');
    truncateSync(join(place, 'sparse'), 10 * GB - 1000);
    const client = createS3Client(fixture.server.url, key);
    const used = async (): Promise<number> =>
      (await ann.call<{ used: number }>('GET', `/v2/network-volumes/${small}`)).body.used;
    const counted = AbortSignal.timeout(20_000);
    while ((await used()) === 0) counted.throwIfAborted();
    await client.send(new PutObjectCommand({ Bucket: small, Key: 'fits', Body: 'x'.repeat(900) }));
    await assert.rejects(
      client.send(new PutObjectCommand({ Bucket: small, Key: 'does not', Body: 'x'.repeat(200) })),
      (error: Error) => error.name === 'QuotaExceeded' && /10737418240 bytes/.test(error.message),
    );
    await client.send(new PutObjectCommand({ Bucket: small, Key: 'fits', Body: 'y'.repeat(1000) }));
    assert.equal(await used(), 10 * GB);
    assert.equal((await ann.call('PATCH', `/v2/network-volumes/${small}`, { size: 11 })).status, 200);
    await client.send(new PutObjectCommand({ Bucket: small, Key: 'does not', Body: 'x'.repeat(200) }));
    await client.send(new DeleteObjectCommand({ Bucket: small, Key: 'sparse' }));
    assert.equal(await used(), 1200);
    client.destroy();
  });

  test('a volume that is deleted takes its data along', async () => {
    const gone = await createVolume(ann, { name: 'gone' });
    await s3.send(new PutObjectCommand({ Bucket: gone, Key: 'file', Body: 'x' }));
    const place = join(fixture.database.data, 'volumes', gone);
    assert.ok(existsSync(place));
    assert.equal((await ann.call('DELETE', `/v2/network-volumes/${gone}`)).status, 204);
    assert.ok(!existsSync(place));
    await assert.rejects(s3.send(new GetObjectCommand({ Bucket: gone, Key: 'file' })), {
      name: 'NoSuchBucket',
    });
  });

  test('a folder of 20,000 files is listed in pages, each file once and in order', async () => {
    const place = join(folder, 'many');
    mkdirSync(place);
    const names = Array.from({ length: 20_000 }, (_, index) => `file-${(index * 7919) % 20_000}`);
    for (const name of names) writeFileSync(join(place, name), '');
    const found: string[] = [];
    let ContinuationToken: string | undefined;
    do {
      const page = await s3.send(
        new ListObjectsV2Command({ Bucket, Prefix: 'many/', Delimiter: '/', ContinuationToken }),
      );
      found.push(...(page.Contents ?? []).map(({ Key }) => Key ?? ''));
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    assert.deepEqual(found, names.map((name) => `many/${name}`).sort());
    rmSync(place, { recursive: true });
  });
});

describe('a server that is killed while objects arrive', () => {
  test('has only whole ones after its restart, and finishes pending deletions', async () => {
    const database = await createTestDatabase('sqlite');
    let server = await startServerProcess(database);
    try {
      const client = server.client();
      const Bucket = await createVolume(client);
      const key = await createS3Key(client);
      const s3 = createS3Client(server.url, key);
      const Body = randomBytes(2 * 1024 ** 2);
      const finished = new Set<string>();
      const writers = Array.from({ length: 4 }, async (_, writer) => {
        for (let round = 0; round < 1_000; round += 1) {
          const Key = `w${writer}/${round}`;
          await s3.send(new PutObjectCommand({ Bucket, Key, Body }));
          finished.add(Key);
          if (finished.size === 12) await server.kill();
        }
      });
      await Promise.allSettled(writers);
      s3.destroy();
      const bin = join(database.data, 'volumes', '.s3', '.removed');
      mkdirSync(join(bin, 'left', 'deep'), { recursive: true });
      server = await startServerProcess(database);
      const wiping = AbortSignal.timeout(20_000);
      while (readdirSync(bin).length > 0) {
        wiping.throwIfAborted();
        await new Promise(setImmediate);
      }
      const again = createS3Client(server.url, key);
      const { Contents = [] } = await again.send(new ListObjectsV2Command({ Bucket }));
      const found = new Set(Contents.map(({ Key }) => Key));
      for (const Key of finished) assert.ok(found.has(Key), `${Key} was acknowledged and is gone`);
      for (const { Key, Size } of Contents) {
        assert.equal(Size, Body.length);
        const read = await again.send(new GetObjectCommand({ Bucket, Key }));
        assert.ok(
          Buffer.from((await read.Body?.transformToByteArray()) ?? []).equals(Body),
          `${Key} is not whole`,
        );
      }
      again.destroy();
    } finally {
      await server.stop();
      await database.drop();
    }
  });
});
