import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLocationCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import { createS3Key, createVolume, createS3Client } from '../packages/testing/src/s3-test-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

const md5 = (bytes: Uint8Array | string): string => `"${createHash('md5').update(bytes).digest('hex')}"`;

describe('objects of a network volume, over S3', () => {
  const fixture = serverFixture('sqlite');
  let ann: TestAccount;
  let s3: S3Client;
  let Bucket: string;
  before(async () => {
    ann = await fixture.createAccount('ann');
    Bucket = await createVolume(ann);
    s3 = createS3Client(fixture.server.url, await createS3Key(ann));
  });
  after(() => s3.destroy());

  const put = (Key: string, Body: string | Uint8Array = 'x', more: object = {}) =>
    s3.send(new PutObjectCommand({ Bucket, Key, Body, ...more }));
  const text = async (Key: string, more: object = {}): Promise<string | undefined> =>
    (await s3.send(new GetObjectCommand({ Bucket, Key, ...more }))).Body?.transformToString();
  const keys = async (more: object = {}): Promise<string[]> =>
    ((await s3.send(new ListObjectsV2Command({ Bucket, ...more }))).Contents ?? []).map(
      ({ Key }) => Key ?? '',
    );

  test('are written, read and listed with their metadata', async () => {
    const content = randomBytes(100_000);
    const { ETag } = await put('a/b/ünï ☃ + & %.bin', content, {
      ContentType: 'image/png',
      CacheControl: 'no-cache',
      Metadata: { owner: 'ann', note: 'two words' },
    });
    assert.equal(ETag, md5(content));
    const read = await s3.send(new GetObjectCommand({ Bucket, Key: 'a/b/ünï ☃ + & %.bin' }));
    assert.deepEqual(Buffer.from((await read.Body?.transformToByteArray()) ?? []), content);
    assert.deepEqual(
      [read.ContentType, read.CacheControl, read.Metadata, read.ETag, read.ContentLength],
      ['image/png', 'no-cache', { owner: 'ann', note: 'two words' }, ETag, content.length],
    );
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: 'a/b/ünï ☃ + & %.bin' }));
    assert.deepEqual([head.ETag, head.ContentLength, head.Metadata], [ETag, content.length, read.Metadata]);
    assert.deepEqual(await keys(), ['a/b/ünï ☃ + & %.bin']);
  });

  test('are read in part, on conditions, and with other headers where the address says so', async () => {
    const { ETag = '' } = await put('digits', '0123456789');
    assert.equal(await text('digits', { Range: 'bytes=2-4' }), '234');
    assert.equal(await text('digits', { Range: 'bytes=7-' }), '789');
    assert.equal(await text('digits', { Range: 'bytes=-2' }), '89');
    assert.equal(await text('digits', { Range: 'bytes=5-99' }), '56789');
    const part = await s3.send(new GetObjectCommand({ Bucket, Key: 'digits', Range: 'bytes=0-0' }));
    assert.deepEqual(
      [part.$metadata.httpStatusCode, part.ContentRange, await part.Body?.transformToString()],
      [206, 'bytes 0-0/10', '0'],
    );
    await assert.rejects(text('digits', { Range: 'bytes=10-' }), { name: 'InvalidRange' });
    await assert.rejects(
      text('digits', { IfNoneMatch: ETag }),
      ({ $metadata }: { $metadata: { httpStatusCode: number } }) => $metadata.httpStatusCode === 304,
    );
    await assert.rejects(text('digits', { IfMatch: '"other"' }), { name: 'PreconditionFailed' });
    assert.equal(await text('digits', { IfMatch: ETag }), '0123456789');
    await assert.rejects(
      text('digits', { IfModifiedSince: new Date(Date.now() + 60_000) }),
      ({ $metadata }: { $metadata: { httpStatusCode: number } }) => $metadata.httpStatusCode === 304,
    );
    await assert.rejects(text('digits', { IfUnmodifiedSince: new Date(0) }), { name: 'PreconditionFailed' });
    const named = await s3.send(
      new GetObjectCommand({
        Bucket,
        Key: 'digits',
        ResponseContentType: 'text/csv',
        ResponseContentDisposition: 'attachment; filename="a.csv"',
      }),
    );
    assert.deepEqual(
      [named.ContentType, named.ContentDisposition],
      ['text/csv', 'attachment; filename="a.csv"'],
    );
    await named.Body?.transformToString();
    const asked = (disposition: string): Promise<Response> =>
      fetch(
        `${fixture.server.url}/s3/${Bucket}/digits?response-content-disposition=${encodeURIComponent(disposition)}`,
        { headers: { authorization: `Bearer ${ann.key}` } },
      );
    const beyond = await asked('attachment; filename="文 ü.csv"');
    assert.deepEqual(
      [beyond.status, Buffer.from(beyond.headers.get('content-disposition') ?? '', 'latin1').toString()],
      [200, 'attachment; filename="文 ü.csv"'],
    );
    assert.equal(await beyond.text(), '0123456789');
    assert.equal((await asked('a\r\nset-cookie: b')).status, 400);
  });

  test('are replaced only where that is wanted', async () => {
    await put('once', 'first', { IfNoneMatch: '*' });
    await assert.rejects(put('once', 'second', { IfNoneMatch: '*' }), { name: 'PreconditionFailed' });
    const { ETag = '' } = await s3.send(new HeadObjectCommand({ Bucket, Key: 'once' }));
    await assert.rejects(put('once', 'second', { IfMatch: '"other"' }), { name: 'PreconditionFailed' });
    await put('once', 'second', { IfMatch: ETag });
    assert.equal(await text('once'), 'second');
    const racing = await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) => put('race', `writer ${index}`, { IfNoneMatch: '*' })),
    );
    assert.equal(racing.filter(({ status }) => status === 'fulfilled').length, 1);
  });

  test('that do not exist give another error than missing buckets', async () => {
    await assert.rejects(text('nothing'), { name: 'NoSuchKey' });
    await assert.rejects(text('a/b'), { name: 'NoSuchKey' });
    await assert.rejects(s3.send(new HeadObjectCommand({ Bucket, Key: 'nothing' })), { name: 'NotFound' });
    await assert.rejects(s3.send(new GetObjectCommand({ Bucket: 'nothing', Key: 'x' })), {
      name: 'NoSuchBucket',
    });
    await assert.rejects(s3.send(new HeadBucketCommand({ Bucket: 'nothing' })), { name: 'NotFound' });
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'nothing' }));
  });

  test('are in buckets that are found, with their region', async () => {
    const { Buckets = [] } = await s3.send(new ListBucketsCommand({}));
    assert.deepEqual(
      Buckets.map(({ Name }) => Name),
      [Bucket],
    );
    assert.equal((await s3.send(new HeadBucketCommand({ Bucket }))).BucketRegion, 'LOCAL-1');
    assert.equal((await s3.send(new GetBucketLocationCommand({ Bucket }))).LocationConstraint, 'LOCAL-1');
  });

  test('with checksums of every kind, in headers and after the body', async () => {
    for (const ChecksumAlgorithm of ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const) {
      const { ETag } = await put(`sums/${ChecksumAlgorithm}`, 'sum of it', { ChecksumAlgorithm });
      assert.equal(ETag, md5('sum of it'));
      const read = await s3.send(
        new GetObjectCommand({ Bucket, Key: `sums/${ChecksumAlgorithm}`, ChecksumMode: 'ENABLED' }),
      );
      assert.ok(read[`Checksum${ChecksumAlgorithm}`]);
      assert.equal(await read.Body?.transformToString(), 'sum of it');
    }
    await assert.rejects(put('sums/wrong', 'sum of it', { ChecksumCRC32: 'AAAAAA==' }), {
      name: 'BadDigest',
    });
    await assert.rejects(
      put('sums/wrong', 'sum of it', { ContentMD5: Buffer.alloc(16).toString('base64') }),
      { name: 'BadDigest' },
    );
    await assert.rejects(text('sums/wrong'), { name: 'NoSuchKey' });
    await put('sums/stream', Readable.from([Buffer.from('a '), Buffer.from('stream')]) as never, {
      ContentLength: 8,
    });
    assert.equal(await text('sums/stream'), 'a stream');
  });

  test('are copied within a volume and between two, with their metadata or another', async () => {
    const other = await createVolume(ann, { name: 'other' });
    await put('from here/it+is', 'the content', { ContentType: 'text/x-one', Metadata: { a: '1' } });
    const CopySource = `${Bucket}/${encodeURIComponent('from here/it+is')}`;
    const { CopyObjectResult } = await s3.send(
      new CopyObjectCommand({ Bucket: other, Key: 'copied', CopySource }),
    );
    assert.equal(CopyObjectResult?.ETag, md5('the content'));
    const copied = await s3.send(new GetObjectCommand({ Bucket: other, Key: 'copied' }));
    assert.deepEqual(
      [await copied.Body?.transformToString(), copied.ContentType, copied.Metadata],
      ['the content', 'text/x-one', { a: '1' }],
    );
    await s3.send(
      new CopyObjectCommand({
        Bucket,
        Key: 'from here/it+is',
        CopySource,
        MetadataDirective: 'REPLACE',
        Metadata: { b: '2' },
      }),
    );
    const replaced = await s3.send(new GetObjectCommand({ Bucket, Key: 'from here/it+is' }));
    assert.deepEqual(
      [await replaced.Body?.transformToString(), replaced.Metadata],
      ['the content', { b: '2' }],
    );
    await put('which?versionId=1', 'with a question mark');
    for (const end of ['', '?versionId=null']) {
      await s3.send(
        new CopyObjectCommand({
          Bucket,
          Key: 'that one',
          CopySource: `${Bucket}/${encodeURIComponent('which?versionId=1')}${end}`,
        }),
      );
      assert.equal(await text('that one'), 'with a question mark');
    }
    await assert.rejects(
      s3.send(new CopyObjectCommand({ Bucket, Key: 'x', CopySource: `${Bucket}/nothing` })),
      { name: 'NoSuchKey' },
    );
    await assert.rejects(
      s3.send(new CopyObjectCommand({ Bucket, Key: 'x', CopySource, CopySourceIfMatch: '"other"' })),
      { name: 'PreconditionFailed' },
    );
  });

  test('are deleted one by one and many at once; a folder that S3 made goes with its last object', async () => {
    for (const name of ['one', 'two', 'three & <four>']) await put(`gone/deep/${name}`);
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'gone/deep/one' }));
    assert.deepEqual(await keys({ Prefix: 'gone/' }), ['gone/deep/three & <four>', 'gone/deep/two']);
    const { Deleted = [], Errors = [] } = await s3.send(
      new DeleteObjectsCommand({
        Bucket,
        Delete: {
          Objects: [
            { Key: 'gone/deep/two' },
            { Key: 'gone/deep/three & <four>' },
            { Key: 'never' },
            { Key: 'a/../b' },
          ],
        },
      }),
    );
    assert.deepEqual(
      Deleted.map(({ Key }) => Key),
      ['gone/deep/two', 'gone/deep/three & <four>', 'never'],
    );
    assert.deepEqual(
      Errors.map(({ Key, Code }) => [Key, Code]),
      [['a/../b', 'InvalidArgument']],
    );
    assert.deepEqual(await keys({ Prefix: 'gone' }), []);
    const { Deleted: quiet } = await s3.send(
      new DeleteObjectsCommand({ Bucket, Delete: { Quiet: true, Objects: [{ Key: 'never' }] } }),
    );
    assert.equal(quiet, undefined);
  });

  test('are not deleted by a document that is longer than it says', async () => {
    await put('stays');
    const document = '<Delete><Object><Key>stays</Key></Object></Delete>';
    const ask = async (length: number): Promise<{ status: number; answer: string }> => {
      const response = await fetch(`${fixture.server.url}/s3/${Bucket}?delete`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${ann.key}`,
          'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
          'x-amz-decoded-content-length': String(length),
        },
        body: `${document.length.toString(16)}\r\n${document}\r\n0\r\n\r\n`,
      });
      return { status: response.status, answer: await response.text() };
    };
    const refused = await ask(10);
    assert.equal(refused.status, 400);
    assert.match(refused.answer, /<Code>IncompleteBody<\/Code>/);
    assert.equal(await text('stays'), 'x');
    assert.equal((await ask(document.length)).status, 200);
    assert.deepEqual(await keys({ Prefix: 'stays' }), []);
  });

  test('are listed in byte order, in pages, below a prefix, and as folders', async () => {
    const volume = await createVolume(ann, { name: 'listed' });
    const names = ['a', 'a-b', 'a/1', 'a/2/x', 'a/2/y', 'a0', 'b c', 'b&d', 'z/\u{1f600}', 'z/\uffe0', 'é'];
    for (const Key of [...names].reverse())
      if (Key !== 'a') await s3.send(new PutObjectCommand({ Bucket: volume, Key, Body: Key }));
    const sorted = names
      .filter((name) => name !== 'a')
      .sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
    const list = async (more: object = {}) => s3.send(new ListObjectsV2Command({ Bucket: volume, ...more }));
    const told = async (more: object = {}): Promise<string[]> => {
      const { Contents = [], CommonPrefixes = [] } = await list(more);
      return [...Contents.map(({ Key }) => Key ?? ''), ...CommonPrefixes.map(({ Prefix }) => `${Prefix}…`)];
    };
    assert.deepEqual(await told(), sorted);
    assert.deepEqual(
      await told({ EncodingType: 'url' }),
      sorted.map((key) =>
        key
          .split('/')
          .map((name) => encodeURIComponent(name))
          .join('/'),
      ),
    );
    for (const MaxKeys of [1, 2, 3]) {
      const found: string[] = [];
      let token: string | undefined;
      do {
        const {
          Contents = [],
          NextContinuationToken,
          KeyCount,
          IsTruncated,
        } = await list({ MaxKeys, ContinuationToken: token });
        assert.ok(
          Contents.length <= MaxKeys &&
            KeyCount === Contents.length &&
            IsTruncated === (NextContinuationToken !== undefined),
        );
        found.push(...Contents.map(({ Key }) => Key ?? ''));
        token = NextContinuationToken;
      } while (token !== undefined);
      assert.deepEqual(found, sorted);
    }
    assert.deepEqual(
      await told({ Delimiter: '/' }),
      ['a-b', 'a0', 'b c', 'b&d', 'é', 'a/…', 'z/…'].sort(
        (one, other) =>
          (one.endsWith('…') ? 1 : 0) - (other.endsWith('…') ? 1 : 0) ||
          Buffer.compare(Buffer.from(one), Buffer.from(other)),
      ),
    );
    assert.deepEqual(await told({ Delimiter: '/', Prefix: 'a/' }), ['a/1', 'a/2/…']);
    assert.deepEqual(await told({ Prefix: 'a/2' }), ['a/2/x', 'a/2/y']);
    assert.deepEqual(await told({ Prefix: 'a' }), ['a-b', 'a/1', 'a/2/x', 'a/2/y', 'a0']);
    assert.deepEqual(await told({ StartAfter: 'a/2/x' }), sorted.slice(sorted.indexOf('a/2/x') + 1));
    assert.deepEqual(await told({ StartAfter: 'a/2' }), sorted.slice(sorted.indexOf('a/2/x')));
    assert.deepEqual(await told({ Delimiter: '-' }), [...sorted.filter((key) => key !== 'a-b'), 'a-…']);
    for (const Prefix of ['../', 'a/../', '/', 'a//', 'nothing/here'])
      assert.deepEqual(await told({ Prefix }), []);
    const found: string[] = [];
    let Marker: string | undefined;
    do {
      const page = await s3.send(
        new ListObjectsCommand({ Bucket: volume, Delimiter: '/', MaxKeys: 2, Marker }),
      );
      found.push(
        ...(page.Contents ?? []).map(({ Key }) => Key ?? ''),
        ...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix ?? ''),
      );
      Marker = page.NextMarker;
    } while (Marker !== undefined);
    assert.deepEqual(found.sort(), ['a-b', 'a/', 'a0', 'b c', 'b&d', 'z/', 'é'].sort());
    await assert.rejects(list({ ContinuationToken: 'not!one' }), { name: 'InvalidArgument' });
  });

  test('with a key that ends in a slash are folders, which are listed while they are empty', async () => {
    await put('folder/inner/', '');
    assert.deepEqual(await keys({ Prefix: 'folder' }), ['folder/inner/']);
    assert.equal((await s3.send(new HeadObjectCommand({ Bucket, Key: 'folder/inner/' }))).ContentLength, 0);
    await put('folder/inner/file');
    assert.deepEqual(await keys({ Prefix: 'folder' }), ['folder/inner/file']);
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'folder/inner/' }));
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'folder/inner/file' }));
    assert.deepEqual(await keys({ Prefix: 'folder' }), ['folder/inner/']);
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'folder/inner/' }));
    assert.deepEqual(await keys({ Prefix: 'folder' }), []);
    await assert.rejects(put('folder/inner/', 'content'), { name: 'InvalidArgument' });
  });

  test('never have a key outside the volume, or the path of another kind of file', async () => {
    for (const Key of [
      '../x',
      'a/../../x',
      './x',
      'a//b',
      '/x',
      'a/./b',
      `${'n'.repeat(256)}/x`,
      'nul\0byte',
    ])
      await assert.rejects(put(Key), { name: 'InvalidArgument' }, Key);
    await assert.rejects(put(`${'n/'.repeat(600)}x`), { name: 'KeyTooLongError' });
    await put('file');
    await put('dir/file');
    await assert.rejects(put('file/below'), { name: 'InvalidArgument' });
    await assert.rejects(put('dir'), { name: 'InvalidArgument' });
    assert.equal(await text('file'), 'x');
  });
});
