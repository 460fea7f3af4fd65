import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onlyResult, startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture, ResponseObject } from './graphql.fixture.ts';

let berth: GraphqlFixture;
before(async () => {
  berth = await startGraphqlFixture();
});
after(() => berth.close());

const put = (url: string, body: Buffer) =>
  berth.app.inject({
    method: 'PUT',
    url: url.replace('http://berth.test', ''),
    payload: body,
    headers: { 'content-type': 'application/gzip' },
  });
const create = async (name: string, key?: string): Promise<ResponseObject> =>
  onlyResult(await berth.call('createFlashApp', 'CreateFlashAppInput!', '{ id name }', { name }, key));
const upload = async (app: ResponseObject): Promise<{ uploadUrl: string; objectKey: string }> =>
  onlyResult(
    await berth.call(
      'prepareFlashArtifactUpload',
      'PrepareFlashArtifactUploadInput!',
      '{ uploadUrl objectKey expiresAt }',
      { flashAppId: app.id, tarballSize: 4 },
    ),
  ) as never;

describe('apps of Flash', () => {
  test('are made, found by name and listed with what they hold', async () => {
    const missing = await berth.ask(
      'query ($flashAppName: String!) { flashAppByName(flashAppName: $flashAppName) { id } }',
      { variables: { flashAppName: 'shop' } },
    );
    assert.match(missing.message, /app not found/);
    const app = await create('shop');
    assert.match(
      (await berth.call('createFlashApp', 'CreateFlashAppInput!', '{ id }', { name: 'shop' })).message,
      /exists already/,
    );
    const environment = onlyResult(
      await berth.call('createFlashEnvironment', 'CreateFlashEnvironmentInput!', '{ id name }', {
        flashAppId: app.id,
        name: 'production',
      }),
    );
    assert.match(
      (
        await berth.call('createFlashEnvironment', 'CreateFlashEnvironmentInput!', '{ id }', {
          flashAppId: app.id,
          name: 'production',
        })
      ).message,
      /exists already/,
    );
    const listed = await berth.ask(
      `query getFlashApps { myself { flashApps { id name flashEnvironments { id name state createdAt
        activeBuildId } flashBuilds { id createdAt } } } }`,
    );
    const { flashApps } = onlyResult(listed) as never as {
      flashApps: { id: string; flashEnvironments: ResponseObject[]; flashBuilds: ResponseObject[] }[];
    };
    assert.deepEqual(
      flashApps.map(({ id, flashEnvironments, flashBuilds }) => [
        id,
        flashEnvironments.map((one) => [one.id, one['state'], one['activeBuildId']]),
        flashBuilds,
      ]),
      [[app.id, [[environment.id, 'PENDING', null]], []]],
    );
  });

  test('take a build that was uploaded, and run it in an environment with its endpoints', async () => {
    const app = onlyResult(
      await berth.ask('{ flashAppByName(flashAppName: "shop") { id flashEnvironments { id } } }'),
    ) as ResponseObject & { flashEnvironments: ResponseObject[] };
    const environmentId = app.flashEnvironments[0]?.id;
    const { uploadUrl, objectKey } = await upload(app);
    const tooEarly = await berth.call(
      'finalizeFlashArtifactUpload',
      'FinalizeFlashArtifactUploadInput!',
      '{ id }',
      { flashAppId: app.id, objectKey, manifest: {} },
    );
    assert.match(tooEarly.message, /nothing was uploaded/);
    assert.equal((await put(uploadUrl, Buffer.from('tar!'))).statusCode, 200);
    const build = onlyResult(
      await berth.call(
        'finalizeFlashArtifactUpload',
        'FinalizeFlashArtifactUploadInput!',
        '{ id manifest }',
        { flashAppId: app.id, objectKey, manifest: { resources: { a: 1 } } },
      ),
    );
    assert.deepEqual(build['manifest'], { resources: { a: 1 } });
    onlyResult(
      await berth.call('updateFlashBuildManifest', 'UpdateFlashBuildManifestInput!', '{ id manifest }', {
        flashBuildId: build.id,
        manifest: { resources: {} },
      }),
    );
    assert.deepEqual(
      onlyResult(
        await berth.ask('query ($input: String!) { flashBuild(flashBuildId: $input) { id manifest } }', {
          variables: { input: build.id },
        }),
      )['manifest'],
      { resources: {} },
    );

    const deployed = onlyResult(
      await berth.call(
        'deployBuildToEnvironment',
        'DeployBuildToEnvironmentInput!',
        '{ id name activeArtifact { objectKey downloadUrl expiresAt } }',
        { flashEnvironmentId: environmentId, flashBuildId: build.id },
      ),
    );
    const { downloadUrl } = deployed['activeArtifact'] as { downloadUrl: string };
    assert.equal(
      (await berth.app.inject({ method: 'GET', url: downloadUrl.replace('http://berth.test', '') })).body,
      'tar!',
    );

    const endpoint = onlyResult(
      await berth.call('saveEndpoint', 'EndpointInput!', '{ id flashEnvironmentId activeBuildid }', {
        name: 'worker',
        template: { name: 'w', imageName: 'a:1' },
        gpuIds: 'ADA_24',
        flashEnvironmentId: environmentId,
      }),
    );
    assert.deepEqual([endpoint['flashEnvironmentId'], endpoint['activeBuildid']], [environmentId, build.id]);
    const seen = onlyResult(
      await berth.ask(
        `query ($input: FlashEnvironmentByNameInput!) { flashEnvironmentByName(input: $input) { id
          state activeBuildId endpoints { id name } networkVolumes { id name } } }`,
        { variables: { input: { flashAppId: app.id, name: 'production' } } },
      ),
    );
    assert.deepEqual(
      [seen['state'], seen['activeBuildId'], seen['endpoints'], seen['networkVolumes']],
      ['ACTIVE', build.id, [{ id: endpoint.id, name: 'worker' }], []],
    );
  });

  test('a link does one thing, for an hour', async () => {
    const { uploadUrl } = await upload(
      onlyResult(await berth.ask('{ flashAppByName(flashAppName: "shop") { id } }')),
    );
    const at = (url: string) => url.replace('http://berth.test', '');
    assert.equal((await berth.app.inject({ method: 'GET', url: at(uploadUrl) })).statusCode, 403);
    assert.equal((await put(uploadUrl.replace('flash/', 'flash/../'), Buffer.from('x'))).statusCode, 403);
    assert.equal(
      (await put(uploadUrl.replace(/expires=\d+/, 'expires=99999999999999'), Buffer.from('x'))).statusCode,
      403,
    );
    berth.clock.advance(61 * 60 * 1000);
    assert.equal((await put(uploadUrl, Buffer.from('x'))).statusCode, 403);
  });

  test('are seen by their own account alone, and go with everything in them', async () => {
    const stranger = await berth.account('stranger');
    const app = onlyResult(
      await berth.ask('{ flashAppByName(flashAppName: "shop") { id flashEnvironments { id } } }'),
    ) as ResponseObject & { flashEnvironments: ResponseObject[] };
    for (const query of [
      `{ flashApp(flashAppId: "${app.id}") { id } }`,
      `{ flashEnvironment(flashEnvironmentId: "${app.flashEnvironments[0]?.id}") { id } }`,
      `mutation { deleteFlashApp(flashAppId: "${app.id}") }`,
    ]) {
      assert.equal((await berth.ask(query, { key: stranger })).code, 'NOT_FOUND', query);
    }
    assert.deepEqual((await berth.ask('{ myself { flashApps { id } } }', { key: stranger })).data, {
      myself: { flashApps: [] },
    });
    assert.deepEqual((await berth.ask(`mutation { deleteFlashApp(flashAppId: "${app.id}") }`)).data, {
      deleteFlashApp: null,
    });
    assert.equal(
      (await berth.ask(`{ flashEnvironment(flashEnvironmentId: "${app.flashEnvironments[0]?.id}") { id } }`))
        .code,
      'NOT_FOUND',
    );
  });

  test('an environment goes by itself too, and no endpoint is made for one that is not there', async () => {
    const app = await create('second');
    const { id } = onlyResult(
      await berth.call('createFlashEnvironment', 'CreateFlashEnvironmentInput!', '{ id }', {
        flashAppId: app.id,
        name: 'one',
      }),
    );
    assert.deepEqual(
      (await berth.ask(`mutation { deleteFlashEnvironment(flashEnvironmentId: "${id}") }`)).data,
      { deleteFlashEnvironment: null },
    );
    const before = (
      (await berth.ask('{ myself { endpoints { id } } }')).data as { myself: { endpoints: unknown[] } }
    ).myself.endpoints.length;
    assert.equal(
      (
        await berth.call('saveEndpoint', 'EndpointInput!', '{ id }', {
          name: 'x',
          template: { name: 'w2', imageName: 'a:1' },
          flashEnvironmentId: id,
        })
      ).code,
      'NOT_FOUND',
    );
    assert.equal(
      ((await berth.ask('{ myself { endpoints { id } } }')).data as { myself: { endpoints: unknown[] } })
        .myself.endpoints.length,
      before,
    );
  });
});

describe('a program that asks for a key', () => {
  const look = async (id: string): Promise<ResponseObject> =>
    onlyResult(
      await berth.ask(
        `query ($id: String!) { flashAuthRequestStatus(flashAuthRequestId: $id) { id status expiresAt
          apiKey codeChallenge } }`,
        { key: null, variables: { id } },
      ),
    );
  const ask = async (): Promise<ResponseObject> =>
    onlyResult(
      await berth.ask(
        `mutation { createFlashAuthRequest(apiKeyName: "laptop", codeChallenge: "c",
          codeChallengeMethod: "S256") { id status } }`,
        { key: null },
      ),
    );
  const answer = (what: string, id: string, key?: string) =>
    berth.ask(`mutation ($id: String!) { ${what}(flashAuthRequestId: $id) { status apiKey } }`, {
      variables: { id },
      ...(key !== undefined && { key }),
    });

  test('gets it once, after it was approved with a key', async () => {
    const { id, status } = await ask();
    assert.equal(status, 'PENDING');
    assert.equal(
      (
        await berth.ask(`mutation { approveFlashAuthRequest(flashAuthRequestId: "${id}") { id } }`, {
          key: null,
        })
      ).status,
      401,
    );
    assert.deepEqual(onlyResult(await answer('approveFlashAuthRequest', id)), {
      status: 'APPROVED',
      apiKey: null,
    });
    assert.match((await answer('approveFlashAuthRequest', id)).message, /answered already/);
    const fetched = await look(id);
    assert.deepEqual([fetched['status'], fetched['codeChallenge']], ['APPROVED', 'c']);
    assert.equal(
      onlyResult(await berth.ask('{ myself { id } }', { key: String(fetched['apiKey']) })).id,
      'root',
    );
    assert.deepEqual(((again) => [again['status'], again['apiKey']])(await look(id)), ['CONSUMED', null]);
  });

  test('is refused at once if the name of its key is invalid', async () => {
    const named = (name: string) =>
      berth.ask('mutation ($name: String) { createFlashAuthRequest(apiKeyName: $name) { id } }', {
        key: null,
        variables: { name },
      });
    for (const name of [' ', 'x'.repeat(192)])
      assert.match((await named(name)).message, /name must have 1 to 191 characters/);
    for (const name of ['x'.repeat(191), ''])
      assert.equal(
        onlyResult(await answer('approveFlashAuthRequest', onlyResult(await named(name)).id))['status'],
        'APPROVED',
      );
  });

  test('gets none after a refusal, a timeout, or an approval by a key that may not create keys', async () => {
    const denied = await ask();
    assert.equal(onlyResult(await answer('denyFlashAuthRequest', denied.id))['status'], 'DENIED');
    assert.deepEqual(((seen) => [seen['status'], seen['apiKey']])(await look(denied.id)), ['DENIED', null]);
    const late = await ask();
    const weak = await berth.key({ access: 'restricted', scopes: { graphql: 'write' } });
    assert.equal((await answer('approveFlashAuthRequest', late.id, weak)).status, 403);
    berth.clock.advance(11 * 60 * 1000);
    assert.equal((await look(late.id))['status'], 'EXPIRED');
    assert.match((await answer('approveFlashAuthRequest', late.id)).message, /has expired/);
    assert.equal(
      (await berth.ask('{ flashAuthRequestStatus(flashAuthRequestId: "no") { id } }', { key: null })).code,
      'NOT_FOUND',
    );
  });
});

describe('models', () => {
  const SELECTION = `{ success message model { id owner name provider status users { userId credentialType } versions
      { uuid status } } version { uuid hash status metadata } }`;
  test('are added, get versions, are found and removed', async () => {
    const input = { owner: 'me', name: 'parrot', provider: 'HUGGING_FACE', metadata: { size: 7 } };
    const first = onlyResult(
      await berth.call('addModelToRepo', 'AddModelToRepoInput!', SELECTION, input),
    ) as never as { model: ResponseObject; version: { uuid: string; metadata: unknown } };
    assert.deepEqual(first.version.metadata, { size: 7 });
    const second = onlyResult(
      await berth.call('addModelToRepo', 'AddModelToRepoInput!', SELECTION, input),
    ) as never as { model: ResponseObject & { versions: unknown[] } };
    assert.deepEqual([second.model.id, second.model.versions.length], [first.model.id, 2]);
    const set = await berth.ask(
      `mutation ($uuid: ID, $status: ModelVersionStatus) { updateModelVersionStatus(uuid: $uuid,
        status: $status) { success modelVersion { uuid status } } }`,
      { variables: { uuid: first.version.uuid, status: 'READY' } },
    );
    assert.deepEqual(onlyResult(set)['modelVersion'], { uuid: first.version.uuid, status: 'READY' });
    assert.equal(
      (
        onlyResult(await berth.ask('{ myModel(owner: "me", name: "parrot") { versions { status } } }'))[
          'versions'
        ] as unknown[]
      ).length,
      2,
    );
    assert.deepEqual((await berth.ask('{ myModels(input: {provider: "OTHER"}) { id } }')).data, {
      myModels: [],
    });
    assert.deepEqual(
      (await berth.ask('{ myModels { id } }', { key: await berth.account('elsewhere') })).data,
      { myModels: [] },
    );
    assert.equal(
      onlyResult(
        await berth.call('removeModelFromRepo', 'RemoveModelFromRepoInput!', '{ success }', {
          owner: 'me',
          name: 'parrot',
        }),
      )['success'],
      true,
    );
    assert.deepEqual((await berth.ask('{ myModel(owner: "me", name: "parrot") { id } }')).data, {
      myModel: null,
    });
    assert.equal(
      (
        await berth.call('removeModelFromRepo', 'RemoveModelFromRepoInput!', '{ success }', {
          owner: 'me',
          name: 'parrot',
        })
      ).code,
      'NOT_FOUND',
    );
  });

  test('an upload is refused with what to do instead', async () => {
    assert.match(
      (
        await berth.call('createModelRepoUpload', 'CreateModelRepoUploadInput!', '{ success }', {
          owner: 'me',
          name: 'parrot',
          fileName: 'x',
        })
      ).message,
      /network volume/,
    );
  });
});
