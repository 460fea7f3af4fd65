import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { npmFile } from '../../support/npm-client.mjs';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { runBerth } from '../../../packages/testing/src/berth-command.ts';

type Command = new (input: Record<string, unknown>) => object;

interface S3Module {
  S3Client: new (
    options: Record<string, unknown>,
  ) => { send(command: object): Promise<Record<string, unknown>> };
  [command: `${string}Command`]: Command;
}

describe('the AWS S3 client', { concurrency: false }, () => {
  const fixture = clientFixture();
  let ask: (command: string, input?: Record<string, unknown>) => Promise<Record<string, unknown>>;
  let bucket = '';
  before(async () => {
    const { code, json } = await runBerth<{ accessId: string; secret: string }>(
      ['key', 'create', '--s3', '--name', 's3', '--json'],
      { BERTH_URL: fixture.server.url, BERTH_API_KEY: fixture.server.key },
    );
    assert.equal(code, 0);
    const volume = await fixture.client.call<{ id: string }>('POST', '/v2/network-volumes', {
      name: 's3',
      size: 10,
      dataCenter: 'LOCAL-1',
    });
    bucket = volume.body.id;
    const module = (await import(
      pathToFileURL(npmFile('s3', '@aws-sdk/client-s3/dist-cjs/index.js')).href
    )) as S3Module;
    const client = new module.S3Client({
      endpoint: `${fixture.server.url}/s3`,
      region: 'LOCAL-1',
      forcePathStyle: true,
      credentials: { accessKeyId: json.accessId, secretAccessKey: json.secret },
    });
    ask = (command, input = {}) =>
      client.send(new (module[`${command}Command`] as Command)({ Bucket: bucket, ...input }));
  });

  test('puts, reads, heads and lists objects', async () => {
    await ask('PutObject', { Key: 'folder/one.txt', Body: 'hello', ContentType: 'text/plain' });
    const { Body } = await ask('GetObject', { Key: 'folder/one.txt' });
    assert.equal(await (Body as { transformToString(): Promise<string> }).transformToString(), 'hello');
    assert.equal((await ask('HeadObject', { Key: 'folder/one.txt' }))['ContentLength'], 5);
    assert.deepEqual(
      ((await ask('ListObjectsV2', { Prefix: 'folder/' }))['Contents'] as { Key: string }[]).map(
        ({ Key }) => Key,
      ),
      ['folder/one.txt'],
    );
  });

  test('reads a part, copies and deletes', async () => {
    const { Body } = await ask('GetObject', { Key: 'folder/one.txt', Range: 'bytes=1-3' });
    assert.equal(await (Body as { transformToString(): Promise<string> }).transformToString(), 'ell');
    await ask('CopyObject', { Key: 'two.txt', CopySource: `${bucket}/folder/one.txt` });
    await ask('DeleteObject', { Key: 'folder/one.txt' });
    await assert.rejects(ask('GetObject', { Key: 'folder/one.txt' }), { name: 'NoSuchKey' });
  });

  test('uploads in parts', async () => {
    const { UploadId } = await ask('CreateMultipartUpload', { Key: 'large.bin' });
    const bodies = [Buffer.alloc(5 * 1024 * 1024, 1), Buffer.from('end')];
    const Parts = [];
    for (const [index, Body] of bodies.entries())
      Parts.push({
        PartNumber: index + 1,
        ETag: (await ask('UploadPart', { Key: 'large.bin', UploadId, PartNumber: index + 1, Body }))['ETag'],
      });
    await ask('CompleteMultipartUpload', { Key: 'large.bin', UploadId, MultipartUpload: { Parts } });
    assert.equal(
      (await ask('HeadObject', { Key: 'large.bin' }))['ContentLength'],
      bodies.reduce((sum, { length }) => sum + length, 0),
    );
  });

  test('a bucket that is not there is told by its name', async () => {
    await assert.rejects(ask('ListObjectsV2', { Bucket: 'nosuchvolume' }), { name: 'NoSuchBucket' });
  });
});
