import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { RegistryDelegations } from './registry-delegations.ts';
import { EcrLogin, awsIdentityFromEnv, sigV4Headers } from './ecr-login.ts';
import { PullCredentials } from './pull-credentials.ts';
import { Registries } from './registries.ts';

const HOST = '123456789012.dkr.ecr.us-east-2.amazonaws.com';
const identity = { accessKeyId: 'AKID', secretAccessKey: 'wJalr', sessionToken: undefined };

describe('pull credentials', () => {
  let context: ServiceContext;
  let url = '';
  const asked: { headers: Record<string, unknown>; body: string }[] = [];
  let answer: () => [number, unknown] = () => [
    200,
    { authorizationData: [{ authorizationToken: Buffer.from('AWS:a:token').toString('base64') }] },
  ];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) body += chunk;
    asked.push({ headers: request.headers, body });
    const [status, said] = answer();
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(said));
  });
  before(async () => {
    context = await createServiceContext();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  after(async () => {
    server.close();
    await context.close();
  });

  test('are the named ones, else from a delegation that covers the image, else none', async () => {
    const pulls = new PullCredentials(
      context.store,
      new EcrLogin({ identity, endpoint: url, clock: context.clock }),
    );
    const [ann, bob] = [await context.account('ann'), await context.account('bob')];
    const saved = await new Registries(context).create(ann, { name: 'hub', username: 'u', password: 'p' });
    await new RegistryDelegations(context).create(
      ann,
      'arn:aws:ecr:us-east-2:123456789012:repository/team/image',
      'ours',
    );
    await new RegistryDelegations(context).create(
      ann,
      'arn:aws:ecr:us-east-2:123456789012:repository/team/pinned:v2',
      null,
    );
    assert.deepEqual(await pulls.find(ann.accountId, saved.id, `${HOST}/team/image:v1`), {
      username: 'u',
      password: 'p',
    });
    assert.equal(await pulls.find(bob.accountId, saved.id, 'x'), undefined, 'not theirs');
    for (const image of [
      `${HOST}/team/image`,
      `${HOST}/team/image:v1`,
      `${HOST}/team/image@sha256:${'a'.repeat(64)}`,
      `${HOST}/team/pinned:v2`,
    ]) {
      assert.deepEqual(
        await pulls.find(ann.accountId, null, image),
        { username: 'AWS', password: 'a:token' },
        image,
      );
      assert.equal(await pulls.find(bob.accountId, null, image), undefined, 'not theirs');
    }
    for (const image of [
      'python:3.12',
      `${HOST}/team/other`,
      `${HOST}/team/pinned:v3`,
      `999999999999.dkr.ecr.us-east-2.amazonaws.com/team/image`,
      `evil.example/${HOST}/team/image`,
    ])
      assert.equal(await pulls.find(ann.accountId, null, image), undefined, image);
    assert.equal(asked.length, 1, 'a login is kept for a while');
    context.clock.advance(7 * 3_600_000);
    await pulls.find(ann.accountId, null, `${HOST}/team/image`);
    assert.equal(asked.length, 2);
    const [{ headers, body } = { headers: {}, body: '' }] = asked;
    assert.equal(headers['x-amz-target'], 'AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken');
    assert.deepEqual(JSON.parse(body), { registryIds: ['123456789012'] });
    assert.match(
      String(headers['authorization']),
      /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/us-east-2\/ecr\/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=[0-9a-f]{64}$/,
    );
  });

  test('the error says why there is no login', async () => {
    const of = (login: EcrLogin): Promise<unknown> =>
      login.credentialsFor({ awsUser: '123456789012', awsRegion: 'eu-west-1' });
    await assert.rejects(
      of(new EcrLogin({ identity: awsIdentityFromEnv({}), endpoint: url, clock: context.clock })),
      { code: 'unavailable', message: /AWS_ACCESS_KEY_ID/ },
    );
    answer = () => [
      400,
      { __type: 'AccessDeniedException', message: 'not authorized to perform ecr:GetAuthorizationToken' },
    ];
    await assert.rejects(
      of(new EcrLogin({ identity, endpoint: url, clock: context.clock })),
      /gives no login for 123456789012 in eu-west-1: not authorized/,
    );
    await assert.rejects(
      of(new EcrLogin({ identity, endpoint: 'http://127.0.0.1:9/', clock: context.clock })),
      { code: 'unavailable' },
    );
  });

  test('the signature covers the whole request', () => {
    const at = {
      url: new URL('https://api.ecr.us-east-2.amazonaws.com/'),
      body: '{}',
      region: 'us-east-2',
      identity,
      now: Date.UTC(2026, 0, 2, 3, 4, 5),
    };
    const headers = sigV4Headers(at);
    assert.equal(headers['x-amz-date'], '20260102T030405Z');
    for (const other of [
      { ...at, body: '{ }' },
      { ...at, region: 'us-east-1' },
      { ...at, now: at.now + 1000 },
      { ...at, identity: { ...identity, secretAccessKey: 'x' } },
      { ...at, identity: { ...identity, sessionToken: 't' } },
    ]) {
      assert.notEqual(sigV4Headers(other)['authorization'], headers['authorization']);
    }
  });
});
