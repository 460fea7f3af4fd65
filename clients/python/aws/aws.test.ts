import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { runBerth } from '../../../packages/testing/src/berth-command.ts';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { installedPython, runPythonForJson } from '../python-programs.ts';

const run = promisify(execFile);
const python = installedPython('aws');

const BOTO3 = `
import boto3, json, os
from boto3.s3.transfer import TransferConfig

s3 = boto3.client("s3")
bucket = os.environ["VOLUME"]
open(os.environ["HOME"] + "/large.bin", "wb").write(b"7" * (12 << 20))
s3.upload_file(os.environ["HOME"] + "/large.bin", bucket, "models/large.bin",
               Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
part = s3.get_object(Bucket=bucket, Key="models/large.bin", Range="bytes=3-5")["Body"].read().decode()
for n in range(3):
    s3.put_object(Bucket=bucket, Key=f"many/{n}.txt", Body=str(n), Metadata={"number": str(n)})
pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="many/", PaginationConfig={"PageSize": 2})
keys = [found["Key"] for page in pages for found in page["Contents"]]
metadata = s3.head_object(Bucket=bucket, Key="many/2.txt")["Metadata"]
link = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "many/1.txt"})
s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
left = s3.list_objects_v2(Bucket=bucket, Prefix="many/")["KeyCount"]
print("SAID " + json.dumps({"part": part, "keys": keys, "metadata": metadata, "link": link, "left": left}))
`;

describe('AWS clients on a network volume', { concurrency: false }, () => {
  const fixture = clientFixture();
  let folder: string;
  let env: Record<string, string>;
  let aws: (...words: string[]) => Promise<string>;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'berth-aws-'));
    const { json } = await runBerth<{ accessId: string; secret: string }>(
      ['key', 'create', '--s3', '--name', 'aws', '--json'],
      { BERTH_URL: fixture.server.url, BERTH_API_KEY: fixture.server.key },
    );
    const made = await fixture.client.call<{ id: string }>('POST', '/v2/network-volumes', {
      name: 'aws',
      size: 10,
      dataCenter: 'LOCAL-1',
    });
    env = {
      PATH: `${dirname(python.path)}:${process.env['PATH']}`,
      HOME: folder,
      AWS_ACCESS_KEY_ID: json.accessId,
      AWS_SECRET_ACCESS_KEY: json.secret,
      AWS_ENDPOINT_URL: `${fixture.server.url}/s3`,
      AWS_DEFAULT_REGION: 'LOCAL-1',
      VOLUME: made.body.id,
    };
    aws = async (...words) => (await run('aws', ['s3', ...words], { env })).stdout;
    mkdirSync(join(folder, 'data/sub'), { recursive: true });
    writeFileSync(join(folder, 'data/one.txt'), 'one');
    writeFileSync(join(folder, 'data/sub/zwei €.txt'), 'zwei');
    // Above its limit for one request: it is uploaded in parts.
    writeFileSync(join(folder, 'data/large.bin'), Buffer.alloc(12 << 20, 7));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('the command line syncs folders in both directions, with deletions', async () => {
    const volume = `s3://${env['VOLUME']}/data`;
    await aws('sync', join(folder, 'data'), volume);
    const listed = await aws('ls', volume, '--recursive', '--summarize');
    assert.match(listed, / 4 data\/sub\/zwei €\.txt\n[^]*Total Objects: 3/);
    await aws('sync', volume, join(folder, 'back'));
    assert.ok(readFileSync(join(folder, 'back/large.bin')).equals(Buffer.alloc(12 << 20, 7)));
    assert.equal(readFileSync(join(folder, 'back/sub/zwei €.txt'), 'utf8'), 'zwei');
    rmSync(join(folder, 'data/one.txt'));
    await aws('sync', join(folder, 'data'), volume, '--delete');
    assert.doesNotMatch(await aws('ls', volume, '--recursive'), /one\.txt/);
    await aws('rm', volume, '--recursive');
    assert.match(await aws('ls', `s3://${env['VOLUME']}`, '--summarize'), /Total Objects: 0/);
  });

  test('boto3 uploads in parts, reads ranges and pages, signs links and deletes', async () => {
    const { link, ...said } = await runPythonForJson(python, BOTO3, env);
    assert.deepEqual(said, {
      part: '777',
      keys: ['many/0.txt', 'many/1.txt', 'many/2.txt'],
      metadata: { number: '2' },
      left: 0,
    });
    // Its object is deleted by now.
    assert.equal((await fetch(String(link))).status, 404);
  });
});
