import assert from 'node:assert/strict';
import { existsSync, globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { deployHandler, uploadHandler } from '../packages/testing/src/deploy-handler.ts';
import { FLASH_HANDLER, askFlash, deployFlash } from '../packages/testing/src/flash-client.ts';
import { createS3Key, createVolume } from '../packages/testing/src/s3-test-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** The bucket is a network volume of a third Berth. */
describe('deployed folders and flash builds of several servers in an S3 bucket', { timeout: 120_000 }, () => {
  let storageData: TestDatabase;
  let storage: ServerProcess;
  let database: TestDatabase;
  let first: ServerProcess;
  let second: ServerProcess;
  let env: Record<string, string>;
  let objects: string;
  const secondData = (): string => `${database.data}-second`;

  before(async () => {
    storageData = await createTestDatabase('sqlite');
    storage = await startServerProcess(storageData);
    const bucket = await createVolume(storage.client());
    const { accessId, secret } = await createS3Key(storage.client());
    objects = join(storageData.data, 'volumes', bucket);
    env = {
      BERTH_IMAGES_BUCKET: `s3://${bucket}/folders`,
      BERTH_IMAGES_S3_ENDPOINT: `${storage.url}/s3`,
      BERTH_IMAGES_S3_REGION: 'LOCAL-1',
      AWS_ACCESS_KEY_ID: accessId,
      AWS_SECRET_ACCESS_KEY: secret,
    };
    database = await createTestDatabase('postgres');
    first = await startServerProcess(database, env);
    second = await startServerProcess({ ...database, data: secondData() }, env);
  });
  after(async () => {
    await Promise.all([first, second, storage].map((server) => server?.stop()));
    await database?.drop();
    await storageData?.drop();
    rmSync(secondData(), { recursive: true, force: true });
  });
  const archives = (pattern = 'folders/*/*.tar.gz'): string[] => globSync(pattern, { cwd: objects });
  const handlersOfSecond = (): string[] => globSync('images/*/*/handler.ts', { cwd: secondData() });

  test('a folder deployed on one server is on the other, and its files are not in the database', async () => {
    const endpoint = await deployHandler(
      first.client(),
      'upper',
      'export default ({ input }) => input.toUpperCase();',
    );
    assert.equal(archives().length, 1);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query(
      'select (select count(*)::int from image_archives) as archives, (select count(*)::int from image_archive_parts) as parts',
    );
    await client.end();
    assert.deepEqual(rows, [{ archives: 1, parts: 0 }]);
    await waitFor('the second server has it', async () => handlersOfSecond().length === 1);
    const path = `/v2/${endpoint}/runsync?wait=60000`;
    const { body, text } = await second.client().call<{ output: string }>('POST', path, { input: 'hello' });
    assert.equal(body.output, 'HELLO', text);
    assert.equal((await first.client().call('DELETE', `/v2/serverless/${endpoint}`)).status, 204);
  });

  test('a flash build that was uploaded to one server is on the other, and its content is not in the database', async () => {
    const image = await uploadHandler(first.client(), 'built', FLASH_HANDLER);
    const { appId, endpointId } = await deployFlash(second.client(), {
      app: 'greetings',
      environment: 'production',
      build: 'the build',
      image,
    });
    assert.equal(archives('folders/flash/*/*/*.tar.gz').length, 1);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query(
      'select (select count(*)::int from shared_files) as files, (select count(*)::int from shared_file_parts) as parts',
    );
    await client.end();
    assert.deepEqual(rows, [{ files: 1, parts: 0 }]);
    const path = `/v2/${endpointId}/runsync?wait=60000`;
    const { body, text } = await first
      .client()
      .call<{ output: { build: string } }>('POST', path, { input: 1 });
    assert.equal(body.output.build, 'the build', text);
    assert.equal((await first.client().call('DELETE', `/v2/serverless/${endpointId}`)).status, 204);
    await askFlash(
      first.client(),
      'mutation ($input: String) { answer: deleteFlashApp(flashAppId: $input) }',
      appId,
    );
    assert.deepEqual(archives('folders/flash/*/*/*.tar.gz'), []);
    assert.equal((await first.client().call('DELETE', '/v2/images/built')).status, 200);
  });

  test('a server that does not know the bucket says so, and has the folder once it does', async () => {
    await second.stop();
    rmSync(join(secondData(), 'images'), { recursive: true });
    const { BERTH_IMAGES_BUCKET: _bucket, ...without } = env;
    second = await startServerProcess({ ...database, data: secondData() }, without);
    await waitFor('it says why', async () =>
      second.log().includes('images.bucket is not set on this server'),
    );
    assert.deepEqual(handlersOfSecond(), []);
    await second.stop();
    second = await startServerProcess({ ...database, data: secondData() }, env);
    await waitFor('the second server has it', async () => handlersOfSecond().length === 1);
  });

  test('a folder that is deleted leaves the bucket', async () => {
    const { status, text } = await first.client().call('DELETE', '/v2/images/upper');
    assert.equal(status, 200, text);
    assert.deepEqual(archives(), []);
    assert.ok(existsSync(objects));
  });
});
