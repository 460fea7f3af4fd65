import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  PutObjectCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import { createS3Key, createVolume, createS3Client } from '../packages/testing/src/s3-test-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

const MB = 1024 ** 2;
const md5 = (bytes: Uint8Array): Buffer => createHash('md5').update(bytes).digest();

describe('objects that arrive in parts, over S3', () => {
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

  const begin = async (Key: string, more: object = {}): Promise<string> =>
    (await s3.send(new CreateMultipartUploadCommand({ Bucket, Key, ...more }))).UploadId ?? '';
  const part = async (Key: string, UploadId: string, PartNumber: number, Body: Uint8Array | string) => ({
    PartNumber,
    ETag: (await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }))).ETag,
  });
  const complete = (Key: string, UploadId: string, Parts: object[]) =>
    s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));

  test('64 MB in eight parts, four at a time and out of order, are one object with the usual ETag', async () => {
    const contents = Array.from({ length: 8 }, () => randomBytes(8 * MB));
    const Key = 'models/large.bin';
    const UploadId = await begin(Key, { ContentType: 'application/x-model', Metadata: { epoch: '3' } });
    const parts: { PartNumber: number; ETag: string | undefined }[] = [];
    const left = contents.map((_, index) => index + 1).reverse();
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let number = left.shift(); number !== undefined; number = left.shift())
          parts.push(await part(Key, UploadId, number, contents[number - 1] ?? ''));
      }),
    );
    const { Parts = [], IsTruncated } = await s3.send(
      new ListPartsCommand({ Bucket, Key, UploadId, MaxParts: 3 }),
    );
    assert.deepEqual(
      [Parts.map(({ PartNumber, Size }) => [PartNumber, Size]), IsTruncated],
      [
        [
          [1, 8 * MB],
          [2, 8 * MB],
          [3, 8 * MB],
        ],
        true,
      ],
    );
    const second = await s3.send(new ListPartsCommand({ Bucket, Key, UploadId, PartNumberMarker: '6' }));
    assert.deepEqual(
      [second.Parts?.map(({ PartNumber }) => PartNumber), second.IsTruncated],
      [[7, 8], false],
    );
    parts.sort((one, other) => one.PartNumber - other.PartNumber);
    const { ETag } = await complete(Key, UploadId, parts);
    assert.equal(ETag, `"${md5(Buffer.concat(contents.map(md5))).toString('hex')}-8"`);
    const read = await s3.send(new GetObjectCommand({ Bucket, Key }));
    assert.deepEqual(
      [read.ETag, read.ContentType, read.Metadata, read.ContentLength],
      [ETag, 'application/x-model', { epoch: '3' }, 64 * MB],
    );
    assert.deepEqual(
      md5((await read.Body?.transformToByteArray()) ?? Buffer.alloc(0)),
      md5(Buffer.concat(contents)),
    );
    const middle = await s3.send(
      new GetObjectCommand({ Bucket, Key, Range: `bytes=${8 * MB - 2}-${8 * MB + 1}` }),
    );
    assert.deepEqual(
      Buffer.from((await middle.Body?.transformToByteArray()) ?? []),
      Buffer.concat([
        contents[0]?.subarray(-2) ?? Buffer.alloc(0),
        contents[1]?.subarray(0, 2) ?? Buffer.alloc(0),
      ]),
    );
    await assert.rejects(complete(Key, UploadId, parts), { name: 'NoSuchUpload' });
    assert.deepEqual(readdirSync(join(fixture.database.data, 'volumes', '.s3', Bucket, 'uploads')), []);
    assert.deepEqual(readdirSync(join(fixture.database.data, 'volumes', '.s3', Bucket, 'arriving')), []);
  });

  test('a part that comes again replaces the earlier one, and a wrong list of parts is refused', async () => {
    const Key = 'again';
    const UploadId = await begin(Key);
    const first = await part(Key, UploadId, 1, 'first try ');
    const again = await part(Key, UploadId, 1, 'second try ');
    const end = await part(Key, UploadId, 5, 'the end');
    await assert.rejects(complete(Key, UploadId, [first, end]), { name: 'InvalidPart' });
    await assert.rejects(complete(Key, UploadId, [end, again]), { name: 'InvalidPartOrder' });
    await assert.rejects(complete(Key, UploadId, [again, { PartNumber: 9, ETag: end.ETag }]), {
      name: 'InvalidPart',
    });
    await assert.rejects(part(Key, UploadId, 10_001, 'x'), { name: 'InvalidArgument' });
    await assert.rejects(part('another key', UploadId, 1, 'x'), { name: 'NoSuchUpload' });
    await assert.rejects(s3.send(new GetObjectCommand({ Bucket, Key })), { name: 'NoSuchKey' });
    const racing = await Promise.allSettled([
      complete(Key, UploadId, [again, end]),
      complete(Key, UploadId, [again, end]),
    ]);
    assert.ok(racing.some(({ status }) => status === 'fulfilled'));
    assert.equal(
      await (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString(),
      'second try the end',
    );
  });

  test('a part that came again when the server ended, and then once more, is the one that counts', async () => {
    const Key = 'cut off';
    const [fresh, stale] = [Buffer.from('fresh'), Buffer.from('stale')];
    // Two names, one before the other in any order that a folder may have.
    for (const [first, second] of [
      [fresh, stale],
      [stale, fresh],
    ] as const) {
      const UploadId = await begin(Key);
      await part(Key, UploadId, 1, first);
      const folder = join(fixture.database.data, 'volumes', '.s3', Bucket, 'uploads', UploadId);
      writeFileSync(join(folder, `00001-${md5(second).toString('hex')}`), second);
      const again = await part(Key, UploadId, 1, second);
      assert.deepEqual(readdirSync(folder).sort(), [`00001-${md5(second).toString('hex')}`, 'upload.json']);
      await complete(Key, UploadId, [again]);
      assert.equal(
        await (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString(),
        second.toString(),
      );
    }
  });

  test('parts are copied from objects, whole or in part', async () => {
    await s3.send(new PutObjectCommand({ Bucket, Key: 'source', Body: '0123456789' }));
    const Key = 'put together';
    const UploadId = await begin(Key);
    const copies = [undefined, 'bytes=3-5'].map((CopySourceRange, index) =>
      s3.send(
        new UploadPartCopyCommand({
          Bucket,
          Key,
          UploadId,
          PartNumber: index + 1,
          CopySource: `${Bucket}/source`,
          CopySourceRange,
        }),
      ),
    );
    const parts = (await Promise.all(copies)).map(({ CopyPartResult }, index) => ({
      PartNumber: index + 1,
      ETag: CopyPartResult?.ETag,
    }));
    await complete(Key, UploadId, parts);
    assert.equal(
      await (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString(),
      '0123456789345',
    );
  });

  test('uploads in progress are listed, in pages, and aborted', async () => {
    const ids = [await begin('list/b'), await begin('list/a'), await begin('list/a')];
    const {
      Uploads = [],
      IsTruncated,
      NextKeyMarker,
      NextUploadIdMarker,
    } = await s3.send(new ListMultipartUploadsCommand({ Bucket, Prefix: 'list/', MaxUploads: 2 }));
    assert.deepEqual([Uploads.map(({ Key }) => Key), IsTruncated], [['list/a', 'list/a'], true]);
    const rest = await s3.send(
      new ListMultipartUploadsCommand({
        Bucket,
        Prefix: 'list/',
        KeyMarker: NextKeyMarker,
        UploadIdMarker: NextUploadIdMarker,
      }),
    );
    assert.deepEqual(
      rest.Uploads?.map(({ Key }) => Key),
      ['list/b'],
    );
    for (const [index, UploadId] of ids.entries())
      await s3.send(
        new AbortMultipartUploadCommand({ Bucket, Key: index === 0 ? 'list/b' : 'list/a', UploadId }),
      );
    assert.equal(
      (await s3.send(new ListMultipartUploadsCommand({ Bucket, Prefix: 'list/' }))).Uploads,
      undefined,
    );
    await assert.rejects(
      s3.send(new AbortMultipartUploadCommand({ Bucket, Key: 'list/b', UploadId: ids[0] })),
      { name: 'NoSuchUpload' },
    );
    await assert.rejects(
      s3.send(new AbortMultipartUploadCommand({ Bucket, Key: 'list/b', UploadId: '../../x' })),
      { name: 'NoSuchUpload' },
    );
  });
});
