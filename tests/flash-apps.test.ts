import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

interface Upload {
  uploadUrl: string;
  objectKey: string;
}

for (const kind of DATABASES) {
  describe(`builds of Flash, on ${kind}`, () => {
    const fixture = serverFixture(kind);
    let owner: TestAccount;
    let appId: string;
    before(async () => {
      owner = await fixture.createAccount('owner');
      appId = (
        await ask<{ createFlashApp: { id: string } }>(
          'mutation { createFlashApp(input: {name: "app"}) { id } }',
        )
      ).createFlashApp.id;
    });

    const ask = async <T>(query: string, variables: Record<string, unknown> = {}): Promise<T> => {
      const { body, text } = await owner.graphql<T>(query, variables);
      assert.equal(body.errors, undefined, text);
      return body.data as T;
    };
    const prepare = async (): Promise<Upload> =>
      (
        await ask<{ prepareFlashArtifactUpload: Upload }>(
          `mutation ($id: String) { prepareFlashArtifactUpload(input: {flashAppId: $id, tarballSize:
            10}) { uploadUrl objectKey } }`,
          { id: appId },
        )
      ).prepareFlashArtifactUpload;
    const put = (url: string, body: string | Uint8Array<ArrayBuffer>): Promise<Response> =>
      fetch(url, { method: 'PUT', body, headers: { 'content-type': 'application/gzip' } });
    const finalize = (objectKey: string, client = owner, app = appId) =>
      client.graphql<{ finalizeFlashArtifactUpload: { id: string } }>(
        'mutation ($input: FinalizeFlashArtifactUploadInput!) { finalizeFlashArtifactUpload(input: $input) { id } }',
        { input: { flashAppId: app, objectKey, manifest: {} } },
      );
    const files = (): string[] =>
      readdirSync(join(fixture.database.data, 'artifacts'), { recursive: true, encoding: 'utf8' });

    test('a large file goes in and comes back as it was', async () => {
      const { uploadUrl, objectKey } = await prepare();
      const content = new Uint8Array(5_000_000).map((_, index) => index % 251);
      assert.equal((await put(uploadUrl, content)).status, 200);
      const { id } = (await finalize(objectKey)).body.data?.finalizeFlashArtifactUpload ?? { id: '' };
      const { createFlashEnvironment } = await ask<{ createFlashEnvironment: { id: string } }>(
        'mutation ($id: String) { createFlashEnvironment(input: {flashAppId: $id, name: "dev"}) { id } }',
        { id: appId },
      );
      const { deployBuildToEnvironment } = await ask<{
        deployBuildToEnvironment: { activeArtifact: { downloadUrl: string } };
      }>(
        `mutation ($input: DeployBuildToEnvironmentInput) { deployBuildToEnvironment(input: $input) {
          activeArtifact { downloadUrl } } }`,
        { input: { flashEnvironmentId: createFlashEnvironment.id, flashBuildId: id } },
      );
      const read = new Uint8Array(
        await (await fetch(deployBuildToEnvironment.activeArtifact.downloadUrl)).arrayBuffer(),
      );
      assert.deepEqual(Buffer.compare(read, content), 0);
    });

    test('one that breaks off leaves nothing', async () => {
      const { uploadUrl, objectKey } = await prepare();
      const name = objectKey.split('/').at(-1) ?? '';
      const outgoing = request(uploadUrl, {
        method: 'PUT',
        headers: { 'content-type': 'application/gzip', 'content-length': 1_000_000 },
      });
      outgoing.on('error', () => undefined);
      outgoing.write(Buffer.alloc(100_000));
      await waitUntilPasses(() => assert.ok(files().some((file) => file.includes(name))));
      outgoing.destroy();
      await waitUntilPasses(() => assert.ok(!files().some((file) => file.includes(name))));
      assert.match((await finalize(objectKey)).text, /nothing was uploaded/);
    });

    test('two at once are one of the two, and make one build', async () => {
      const { uploadUrl, objectKey } = await prepare();
      assert.deepEqual(
        (await Promise.all([put(uploadUrl, 'a'.repeat(100)), put(uploadUrl, 'b'.repeat(100))])).map(
          ({ status }) => status,
        ),
        [200, 200],
      );
      const answers = await Promise.all([finalize(objectKey), finalize(objectKey)]);
      assert.equal(answers.filter(({ body }) => body.errors === undefined).length, 1);
    });

    test('another account makes nothing of it', async () => {
      const stranger = await fixture.createAccount('stranger');
      const { uploadUrl, objectKey } = await prepare();
      await put(uploadUrl, 'x');
      assert.match((await finalize(objectKey, stranger)).text, /not found/);
      const { body } = await stranger.graphql<{ createFlashApp: { id: string } }>(
        'mutation { createFlashApp(input: {name: "app"}) { id } }',
      );
      assert.match(
        (await finalize(objectKey, stranger, body.data?.createFlashApp.id)).text,
        /nothing was uploaded/,
      );
      assert.equal((await fetch(`${fixture.server.url}/artifacts/${objectKey}`)).status, 403);
      assert.equal((await fetch(uploadUrl, { method: 'DELETE' })).status, 405);
    });
  });
}
