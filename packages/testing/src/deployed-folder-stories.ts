import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runBerth } from './berth-command.ts';
import type { EngineFixture } from './engine-fixture.ts';
import { serverlessFixture, type ServerlessFixture } from './serverless-fixture.ts';
import { createTemporaryFolder } from './temporary-folder.ts';

/** Deploys a folder with `berth deploy`, and returns the id of its endpoint. */
type Deploy = (folder: string, ...options: string[]) => Promise<string>;

/**
 * Folders of `berth deploy` on an engine of containers, in a runner image that has Berth in it. `ownTests` are
 * those of one engine alone.
 */
export function deployedFolderStories(
  name: string,
  open: () => Promise<EngineFixture>,
  runnerImage: () => string,
  ownTests: (fixture: ServerlessFixture, deploy: Deploy) => void = () => undefined,
): void {
  describe(`folders that were deployed, on ${name}`, () => {
    const fixture = serverlessFixture(async () => {
      const engine = await open();
      return { ...engine, env: { ...engine.env, BERTH_RUNNER_IMAGE: runnerImage() } };
    });
    const deploy: Deploy = async (folder, ...more) => {
      const { code, json, stderr } = await runBerth<{ id: string }>(
        ['deploy', folder, '--data-center', fixture.engine.dataCenterId, ...more],
        { BERTH_URL: fixture.server.url, BERTH_API_KEY: fixture.server.key },
      );
      assert.equal(code, 0, stderr);
      return json.id;
    };

    test('a handler runs with the files beside it, and a new deploy runs the new files', async () => {
      const folder = createTemporaryFolder('sum', {
        'handler.ts': `import { factor } from './lib/factor.ts';
          export default async ({ input }: { input: { value: number } }) => ({ result: input.value * factor });`,
        'lib/factor.ts': 'export const factor: number = 2;',
      });
      const endpoint = await deploy(folder.path);
      const first = await fixture.runSync(endpoint, { value: 21 });
      assert.deepEqual(
        [first.status, first.output],
        ['COMPLETED', { result: 42 }],
        first.error ?? first.reason,
      );
      // A second one is started for a job that waits long, as for the first worker of a busy machine.
      assert.ok((await fixture.engine.instancesOf(endpoint)).size >= 1, `it runs on ${name}`);
      folder.write({ 'lib/factor.ts': 'export const factor: number = 3;' });
      assert.equal(await deploy(folder.path, '--wait', '--min', '1'), endpoint);
      const second = await fixture.runSync(endpoint, { value: 21 });
      assert.deepEqual([second.status, second.output], ['COMPLETED', { result: 63 }], second.error);
      await fixture.remove(endpoint);
      folder.remove();
    });

    test('the command of a berth.json runs, and others cannot fetch the folder', async () => {
      const folder = createTemporaryFolder('program', {
        'berth.json': JSON.stringify({ command: ['node', 'main.js'] }),
        'main.js': `import('berth-worker').catch(() => undefined);
          console.log('url ' + String(process.env.BERTH_SNAPSHOT_URL)); setInterval(() => {}, 1000);`,
      });
      const endpoint = await deploy(folder.path, '--min', '1');
      const { body } = await fixture.client.call<{ image: string }>('GET', `/v2/serverless/${endpoint}`);
      const [, image = '', digest = ''] = /^local\/([^:]+):(.+)$/.exec(body.image) ?? [];
      const refused = await fetch(`${fixture.server.url}/snapshots/${image}/${digest}/${'a'.repeat(43)}`);
      assert.equal(refused.status, 401);
      await fixture.remove(endpoint);
      folder.remove();
    });

    ownTests(fixture, deploy);
  });
}
