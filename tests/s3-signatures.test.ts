import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  GetObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import { sha256Hex } from '../packages/cloud/src/auth/sigv4.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { createS3Key, createVolume, createS3Client } from '../packages/testing/src/s3-test-client.ts';
import type { S3Key } from '../packages/testing/src/s3-test-client.ts';
import { Sha256, signChunkedPut, signS3Request } from '../packages/testing/src/s3-signing.ts';
import type { S3Attempt, Tampering } from '../packages/testing/src/s3-signing.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

for (const kind of DATABASES) {
  describe(`authentication of S3, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_DATA_CENTERS: 'LOCAL-1,LOCAL-2' });
    let ann: TestAccount;
    let bob: TestAccount;
    let key: S3Key;
    let s3: S3Client;
    let Bucket: string;
    before(async () => {
      [ann, bob] = [await fixture.createAccount('ann'), await fixture.createAccount('bob')];
      Bucket = await createVolume(ann);
      key = await createS3Key(ann);
      s3 = createS3Client(fixture.server.url, key);
      await s3.send(new PutObjectCommand({ Bucket, Key: 'there', Body: 'the content' }));
    });
    after(() => s3.destroy());

    const ask = async (
      attempt: S3Attempt,
      change: (request: { address: string; headers: Record<string, string> }) => void = () => undefined,
      by = key,
    ): Promise<{ status: number; code: string | undefined; text: string }> => {
      const request = signS3Request(fixture.server.url, by, attempt);
      const sent = { address: request.address, headers: request.headers };
      change(sent);
      const response = await fetch(sent.address, {
        method: attempt.method ?? 'GET',
        headers: sent.headers,
        ...(attempt.body !== undefined && { body: attempt.body as string }),
      });
      const text = await response.text();
      return { status: response.status, code: /<Code>(\w+)<\/Code>/.exec(text)?.[1], text };
    };
    const got = async (...with_: Parameters<typeof ask>): Promise<[number, string | undefined]> => {
      const { status, code } = await ask(...with_);
      return [status, code];
    };
    const there = (): string => `/s3/${Bucket}/there`;

    test('a key is made, shown once, listed, and revoked at once', async () => {
      const made = await ann.call<{ accessId: string; secret: string; access: string }>(
        'POST',
        '/v2/account/s3-keys',
        { name: 'sync', access: 'READ_ONLY' },
      );
      assert.deepEqual([made.status, made.body.access], [201, 'READ_ONLY']);
      const listed = await ann.call<{ s3Keys: Record<string, unknown>[] }>('GET', '/v2/account/s3-keys');
      assert.ok(!listed.text.includes(made.body.secret));
      assert.deepEqual(
        listed.body.s3Keys.map(({ accessId }) => accessId),
        [made.body.accessId, key.accessId],
      );
      const reader = createS3Client(fixture.server.url, made.body);
      assert.equal(
        await (await reader.send(new GetObjectCommand({ Bucket, Key: 'there' }))).Body?.transformToString(),
        'the content',
      );
      await assert.rejects(reader.send(new PutObjectCommand({ Bucket, Key: 'mine', Body: 'x' })), {
        name: 'AccessDenied',
      });
      assert.equal((await bob.call('DELETE', `/v2/account/s3-keys/${made.body.accessId}`)).status, 404);
      assert.equal((await ann.call('DELETE', `/v2/account/s3-keys/${made.body.accessId}`)).status, 204);
      await assert.rejects(reader.send(new ListBucketsCommand({})), { name: 'InvalidAccessKeyId' });
      assert.equal((await ann.call('DELETE', `/v2/account/s3-keys/${made.body.accessId}`)).status, 404);
      reader.destroy();
      assert.deepEqual(
        (await listAuditLog(ann)).slice(0, 2).map(({ action, resource }) => [action, resource]),
        [
          ['revoke', 'S3 key'],
          ['create', 'S3 key'],
        ],
      );
    });

    test('only a key with full access makes S3 keys, and an operator makes them for others', async () => {
      const { body } = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'narrow',
        access: 'RESTRICTED',
        scopes: { rest: 'WRITE' },
      });
      assert.equal(
        (await fixture.client(body.key).call('POST', '/v2/account/s3-keys', { name: 'wide' })).status,
        403,
      );
      assert.equal(
        (await ann.call('POST', '/v2/account/s3-keys', { name: 'past', expiresAt: '2020-01-01T00:00:00Z' }))
          .status,
        400,
      );
      assert.equal((await ann.call('POST', '/v2/account/s3-keys', { name: '' })).status, 422);
      assert.equal((await ann.call('POST', `/v2/accounts/${bob.id}/s3-keys`, { name: 'x' })).status, 403);
      const { status, body: made } = await fixture.operator.call<S3Key>(
        'POST',
        `/v2/accounts/${ann.id}/s3-keys`,
        { name: 'from the operator' },
      );
      assert.equal(status, 201);
      assert.equal((await ask({ path: there() }, undefined, made)).text, 'the content');
      assert.equal(
        (await fixture.operator.call<{ s3Keys: object[] }>('GET', `/v2/accounts/${ann.id}/s3-keys`)).body
          .s3Keys.length,
        2,
      );
      assert.equal(
        (await fixture.operator.call('POST', '/v2/accounts/nobody/s3-keys', { name: 'x' })).status,
        404,
      );
      assert.equal(
        (await fixture.operator.call('DELETE', `/v2/account/s3-keys/${made.accessId}`)).status,
        204,
      );
      assert.deepEqual(
        (await listAuditLog(ann)).slice(0, 2).map(({ action, resourceId }) => [action, resourceId]),
        [
          ['revoke', made.accessId],
          ['create', made.accessId],
        ],
      );
    });

    test('the volumes of another account are not there', async () => {
      const other = createS3Client(fixture.server.url, await createS3Key(bob));
      assert.deepEqual((await other.send(new ListBucketsCommand({}))).Buckets ?? [], []);
      await assert.rejects(other.send(new GetObjectCommand({ Bucket, Key: 'there' })), {
        name: 'NoSuchBucket',
      });
      await assert.rejects(other.send(new PutObjectCommand({ Bucket, Key: 'there', Body: 'mine' })), {
        name: 'NoSuchBucket',
      });
      other.destroy();
    });

    test('whatever is wrong with a signature is refused, with its own code', async () => {
      assert.deepEqual(await got({ path: there() }), [200, undefined]);
      assert.deepEqual(
        await got({ path: there() }, undefined, { accessId: 'user_nobody', secret: key.secret }),
        [403, 'InvalidAccessKeyId'],
      );
      assert.deepEqual(await got({ path: there() }, undefined, { ...key, secret: 'rps_wrong' }), [
        403,
        'SignatureDoesNotMatch',
      ]);
      assert.deepEqual(
        await got(
          { path: there() },
          (request) => (request.address = request.address.replace('there', 'their')),
        ),
        [403, 'SignatureDoesNotMatch'],
      );
      assert.deepEqual(
        await got({ path: there() }, (request) => (request.headers['x-amz-meta-more'] = '1')),
        [403, 'AccessDenied'],
      );
      assert.deepEqual(await got({ path: there() }, (request) => delete request.headers['authorization']), [
        403,
        'AccessDenied',
      ]);
      assert.deepEqual(
        await got(
          { path: there() },
          (request) => (request.headers['authorization'] = 'AWS4-HMAC-SHA256 Credential=x'),
        ),
        [400, 'AuthorizationHeaderMalformed'],
      );
      assert.deepEqual(
        await got({ path: there() }, (request) => (request.headers['authorization'] = 'AWS x:y')),
        [400, 'InvalidRequest'],
      );
      assert.deepEqual(await got({ path: there(), at: Date.now() - 59 * 60_000 }), [200, undefined]);
      assert.deepEqual(await got({ path: there(), at: Date.now() - 61 * 60_000 }), [
        403,
        'RequestTimeTooSkewed',
      ]);
      assert.deepEqual(await got({ path: there(), at: Date.now() + 61 * 60_000 }), [
        403,
        'RequestTimeTooSkewed',
      ]);
      const wrong = await ask({ path: there(), region: 'LOCAL-2' });
      assert.deepEqual(
        [wrong.status, wrong.code, /<Region>(.*)<\/Region>/.exec(wrong.text)?.[1]],
        [400, 'AuthorizationHeaderMalformed', 'LOCAL-1'],
      );
      assert.ok(!wrong.text.includes(key.secret));
    });

    test('a body that is not the signed one leaves nothing behind', async () => {
      const put = (attempt: Partial<S3Attempt>, change?: Parameters<typeof ask>[1]) =>
        got({ method: 'PUT', path: `/s3/${Bucket}/tampered`, body: 'the body', ...attempt }, change);
      assert.deepEqual(await put({ payload: sha256Hex('another body') }), [400, 'XAmzContentSHA256Mismatch']);
      assert.deepEqual(
        await put({}, (request) => (request.headers['x-amz-content-sha256'] = sha256Hex('another body'))),
        [403, 'SignatureDoesNotMatch'],
      );
      assert.deepEqual(await put({ payload: 'nonsense' }), [400, 'InvalidArgument']);
      assert.deepEqual(await got({ path: `/s3/${Bucket}/tampered` }), [404, 'NoSuchKey']);
      assert.deepEqual(await put({ payload: 'UNSIGNED-PAYLOAD' }), [200, undefined]);
      assert.deepEqual(await put({}), [200, undefined]);
    });

    test('a body in signed chunks, with a checksum after it, is believed chunk by chunk', async () => {
      const send = async (tamper: Tampering, trailing: boolean): Promise<[number, string | undefined]> => {
        const { address, headers, body } = signChunkedPut(fixture.server.url, key, {
          path: `/s3/${Bucket}/chunked`,
          pieces: ['first chunk, ', 'second chunk'],
          tamper,
          trailing,
        });
        const response = await fetch(address, { method: 'PUT', headers, body });
        return [response.status, /<Code>(\w+)<\/Code>/.exec(await response.text())?.[1]];
      };
      for (const trailing of [false, true]) {
        assert.deepEqual(await send('content', trailing), [403, 'SignatureDoesNotMatch']);
        assert.deepEqual(await send('signature', trailing), [403, 'SignatureDoesNotMatch']);
        assert.deepEqual(await send('end', trailing), [400, 'IncompleteBody']);
      }
      assert.deepEqual(await send('checksum', true), [400, 'BadDigest']);
      assert.deepEqual(await got({ path: `/s3/${Bucket}/chunked` }), [404, 'NoSuchKey']);
      for (const trailing of [false, true]) {
        assert.deepEqual(await send('nothing', trailing), [200, undefined]);
        assert.equal((await ask({ path: `/s3/${Bucket}/chunked` })).text, 'first chunk, second chunk');
      }
    });

    test('a presigned URL opens one object for a while', async () => {
      const open = (attempt: S3Attempt, init: RequestInit = {}) =>
        fetch(signS3Request(fixture.server.url, key, attempt).address, init);
      assert.equal(await (await open({ path: there(), expires: 60 })).text(), 'the content');
      const named = await open({
        path: there(),
        expires: 60,
        query: { 'response-content-disposition': 'attachment; filename="a b.txt"' },
      });
      assert.equal(named.headers.get('content-disposition'), 'attachment; filename="a b.txt"');
      const put = await open(
        { method: 'PUT', path: `/s3/${Bucket}/by address`.replace(' ', '%20'), expires: 60 },
        { method: 'PUT', body: 'put by address' },
      );
      assert.equal(put.status, 200);
      assert.equal((await ask({ path: `/s3/${Bucket}/by%20address` })).text, 'put by address');
      const code = async (response: Response): Promise<[number, string | undefined]> => [
        response.status,
        /<Code>(\w+)<\/Code>/.exec(await response.text())?.[1],
      ];
      assert.deepEqual(await code(await open({ path: there(), expires: 60, at: Date.now() - 61_000 })), [
        403,
        'AccessDenied',
      ]);
      assert.deepEqual(await code(await open({ path: there(), expires: 604_801 })), [
        400,
        'AuthorizationQueryParametersError',
      ]);
      assert.deepEqual(await code(await open({ path: there(), expires: 60 }, { method: 'DELETE' })), [
        403,
        'SignatureDoesNotMatch',
      ]);
      assert.deepEqual(
        await code(
          await fetch(
            signS3Request(fixture.server.url, key, { path: there(), expires: 60 }).address.replace(
              'there',
              'their',
            ),
          ),
        ),
        [403, 'SignatureDoesNotMatch'],
      );
    });

    test('the addresses that the public client signs are understood', async () => {
      const { SignatureV4 } = await import('@smithy/signature-v4');
      const signer = new SignatureV4({
        service: 's3',
        region: 'LOCAL-1',
        credentials: { accessKeyId: key.accessId, secretAccessKey: key.secret },
        sha256: Sha256,
        uriEscapePath: false,
      });
      const host = new URL(fixture.server.url);
      const request = await signer.presign(
        {
          method: 'GET',
          protocol: 'http:',
          hostname: host.hostname,
          port: Number(host.port),
          path: there(),
          query: { 'response-content-type': 'text/x y' },
          headers: { host: host.host, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
        },
        { expiresIn: 100 },
      );
      const response = await fetch(
        `${fixture.server.url}${there()}?${new URLSearchParams(request.query as Record<string, string>).toString().replaceAll('+', '%20')}`,
      );
      assert.deepEqual(
        [await response.text(), response.headers.get('content-type')],
        ['the content', 'text/x y'],
      );
    });

    test('an API key opens it too, with the scope it has for REST', async () => {
      const read = (apiKey: string, init: RequestInit = {}) =>
        fetch(`${fixture.server.url}${there()}`, { ...init, headers: { authorization: `Bearer ${apiKey}` } });
      assert.equal(await (await read(ann.key)).text(), 'the content');
      assert.equal((await read(bob.key)).status, 404);
      assert.equal((await read('rpa_nobody')).status, 403);
      const { body } = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'reader',
        access: 'READ_ONLY',
      });
      assert.equal(await (await read(body.key)).text(), 'the content');
      assert.equal((await read(body.key, { method: 'PUT', body: 'x' })).status, 403);
    });

    test('S3 features that volumes lack give the S3 error', async () => {
      for (const word of ['acl', 'policy', 'versions', 'cors'])
        assert.deepEqual(await got({ path: `/s3/${Bucket}`, query: { [word]: '' } }), [
          501,
          'NotImplemented',
        ]);
      assert.deepEqual(await got({ path: there(), query: { acl: '' } }), [501, 'NotImplemented']);
      assert.deepEqual(await got({ path: there(), method: 'PATCH' }), [405, 'MethodNotAllowed']);
      assert.deepEqual(await got({ path: `/s3/${Bucket}`, method: 'PUT' }), [409, 'BucketAlreadyOwnedByYou']);
      assert.deepEqual(await got({ path: '/s3/unknown', method: 'PUT' }), [404, 'NoSuchBucket']);
      assert.deepEqual(await got({ path: `/s3/${Bucket}`, query: { 'max-keys': 'many' } }), [
        400,
        'InvalidArgument',
      ]);
      assert.deepEqual(
        await got({ path: `/s3/${Bucket}`, method: 'POST', query: { delete: '' }, body: '<Delete><Object>' }),
        [400, 'MalformedXML'],
      );
      assert.equal((await s3.send(new ListObjectsV2Command({ Bucket }))).$metadata.httpStatusCode, 200);
    });
  });
}
