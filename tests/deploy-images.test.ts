import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { ApiResponse, ApiClient } from '../packages/testing/src/api-client.ts';

interface Image {
  name: string;
  image: string;
  digest: string;
  files: number;
  size: number;
  endpoints?: string[];
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const file = (path: string, content = 'x', mode?: number) => ({
  path,
  data: base64(content),
  ...(mode !== undefined && { mode }),
});

describe('uploaded folders', () => {
  const fixture = serverFixture('sqlite');
  let ann: TestAccount;
  let bob: TestAccount;
  before(async () => {
    ann = await fixture.createAccount('ann');
    bob = await fixture.createAccount('bob');
  });

  const upload = (client: ApiClient, name: string, files: unknown[]): Promise<ApiResponse<Image>> =>
    client.call<Image>('POST', '/v2/images', { name, files });
  const images = async (client: ApiClient): Promise<Image[]> =>
    (await client.call<{ images: Image[] }>('GET', '/v2/images')).body.images;
  const onDisk = (...path: string[]): string => join(fixture.database.data, 'images', ...path);

  test('are images: 201 returns the image name, and the files are where the engine reads them', async () => {
    const answer = await upload(fixture.operator, 'echo', [
      file('handler.ts', 'export default 1'),
      file('bin/run', '#!/bin/sh', 0o755),
    ]);
    assert.equal(answer.status, 201, answer.text);
    const { name, image, digest, files, size } = answer.body;
    assert.deepEqual(
      { name, image, files, size },
      { name: 'echo', image: `local/echo:${digest}`, files: 2, size: 25 },
    );
    assert.equal(readFileSync(onDisk('echo', digest, 'handler.ts'), 'utf8'), 'export default 1');
    const again = await upload(fixture.operator, 'echo', [
      file('bin/run', '#!/bin/sh', 0o700),
      file('handler.ts', 'export default 1'),
    ]);
    assert.deepEqual([again.status, again.body.image], [201, image]);
    const other = await upload(fixture.operator, 'echo', [
      file('handler.ts', 'export default 2'),
      file('bin/run', '#!/bin/sh', 0o755),
    ]);
    assert.notEqual(other.body.image, image);
    assert.equal((await images(fixture.operator)).length, 2);
  });

  test('cannot escape their folder', async () => {
    const before = readdirSync(fixture.database.data).sort();
    for (const path of [
      '../evil',
      '/etc/evil',
      'a/../../evil',
      './a',
      'a//b',
      'a\\b',
      'C:/a',
      '..',
      `${'d/'.repeat(512)}x`,
      'n'.repeat(256),
    ]) {
      assert.ok(
        [400, 422].includes((await upload(ann, 'evil', [file('handler.ts'), { path, data: '' }])).status),
        path,
      );
    }
    for (const name of ['', '.', '..', 'a/b', '../x', 'A', 'a.b', 'shell', 'x'.repeat(64)])
      assert.ok([400, 422].includes((await upload(ann, name, [file('handler.ts')])).status), name);
    assert.equal((await upload(ann, 'evil', [file('a'), file('a/b')])).status, 400);
    assert.equal((await upload(ann, 'evil', [file('a'), file('a')])).status, 400);
    assert.equal((await upload(ann, 'evil', [])).status, 422);
    assert.equal((await upload(ann, 'evil', [{ path: 'a', data: 'not base64!' }])).status, 422);
    assert.equal((await upload(ann, 'evil', [{ path: 'a', data: '', link: '/etc/passwd' }])).status, 422);
    assert.deepEqual(await images(ann), []);
    assert.deepEqual(readdirSync(fixture.database.data).sort(), before);
    assert.ok(!existsSync(onDisk(`${ann.id}.evil`)));
  });

  test('belong to the account of the key', async () => {
    const mine = (await upload(ann, 'twin', [file('handler.ts', 'of ann')])).body;
    assert.equal(mine.image, `local/${ann.id}.twin:${mine.digest}`);
    await upload(bob, 'twin', [file('handler.ts', 'of bob')]);
    assert.deepEqual(
      (await images(ann)).map(({ image }) => image),
      [mine.image],
    );
    assert.ok((await images(fixture.operator)).every(({ name }) => name === 'echo'));
    for (const name of ['twin', `${ann.id}.twin`, '..', 'echo'])
      assert.equal(
        (await fixture.operator.call('DELETE', `/v2/images/${encodeURIComponent(name)}`)).status === 200,
        name === 'echo',
        name,
      );
    assert.deepEqual(
      (await images(ann)).map(({ image }) => image),
      [mine.image],
    );
  });

  test('of another account cannot be run', async () => {
    const { image } = (await upload(ann, 'secret', [file('handler.ts', 'export default () => 1')])).body;
    const order = {
      name: 'thief',
      type: 'QUEUE',
      image,
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 0, max: 1 },
    };
    for (const other of [bob, fixture.operator]) {
      const refused = await other.call('POST', '/v2/serverless', order);
      assert.equal(refused.status, 400, refused.text);
      assert.match(refused.text, /belongs to another account/);
    }
    assert.equal(
      (await ann.call('POST', '/v2/serverless', { ...order, workers: { min: 0, max: 0 } })).status,
      201,
    );
  });

  test('need a key that may write, and one that may read', async () => {
    const { body } = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
      name: 'reader',
      access: 'READ_ONLY',
    });
    const reader = fixture.client(body.key);
    assert.equal((await upload(reader, 'x', [file('handler.ts')])).status, 403);
    assert.equal((await reader.call('GET', '/v2/images')).status, 200);
    assert.equal((await upload(fixture.client(undefined), 'x', [file('handler.ts')])).status, 401);
  });

  test('may be far larger than any other body, up to a limit', async () => {
    const large = { path: 'model.bin', data: Buffer.alloc(30_000_000, 7).toString('base64') };
    const { status, body } = await upload(ann, 'large', [file('handler.ts'), large]);
    assert.deepEqual([status, body.size], [201, 30_000_001]);
    const announced = request(`${fixture.server.url}/v2/images`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${ann.key}`,
        'content-type': 'application/json',
        'content-length': 256 * 1024 * 1024 + 1,
      },
    });
    announced.flushHeaders();
    const [refusal] = (await once(announced, 'response')) as [IncomingMessage];
    assert.equal(refusal.statusCode, 413);
    announced.destroy();
  });

  test('go when no endpoint names them', async () => {
    const [one, two] = [
      (await upload(bob, 'app', [file('handler.ts', '1')])).body,
      (await upload(bob, 'app', [file('handler.ts', '2')])).body,
    ];
    const order = {
      name: 'app',
      type: 'QUEUE',
      image: one.image,
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 0, max: 0 },
    };
    const { id } = (await bob.call<{ id: string }>('POST', '/v2/serverless', order)).body;
    assert.deepEqual(
      (await images(bob))
        .filter(({ name }) => name === 'app')
        .map(({ image, endpoints }) => [image, endpoints]),
      [
        [two.image, []],
        [one.image, [id]],
      ],
    );
    assert.deepEqual((await bob.call('DELETE', '/v2/images/app')).body, {
      removed: [two.image],
      kept: [one.image],
    });
    assert.equal((await bob.call('DELETE', '/v2/images/app')).status, 400);
    await bob.call('DELETE', `/v2/serverless/${id}`);
    assert.deepEqual((await bob.call('DELETE', '/v2/images/app')).body, { removed: [one.image], kept: [] });
    assert.equal((await bob.call('DELETE', '/v2/images/app')).status, 404);
    assert.ok(!existsSync(onDisk(`${bob.id}.app`, one.digest)));
  });

  test('whose name is an operation of the job API are addressed all the same', async () => {
    await upload(ann, 'run', [file('handler.ts', '1')]);
    assert.equal((await ann.call('DELETE', '/v2/images/run')).status, 200);
  });
});
