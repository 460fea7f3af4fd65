import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import type { ListedContainer } from '../packages/cloud/src/engines/docker/client/docker-objects.ts';
import { TestRegistry } from '../packages/cloud/src/engines/docker/docker-test-registry.ts';
import { createTestImage, imageArchive } from '../packages/testing/src/docker-test-image.mjs';
import { withDocker } from '../packages/testing/src/with-docker.ts';
import { examplesFixture } from '../packages/testing/src/examples-fixture.ts';
import type { ExampleJobView } from '../packages/testing/src/examples-fixture.ts';
import { pageBlock } from './docs/pages.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

await withDocker((host) => {
  describe('the example of a Dockerfile', () => {
    const fixture = examplesFixture({ BERTH_DOCKER: host });
    const { berth } = fixture;
    const docker = new DockerClient(host);
    const name = `upper-${process.pid}`;
    const image = `${name}:1`;
    let base: { name: string; remove(): Promise<void> };

    before(async () => {
      base = await createTestImage(host, `localhost/berth-base:p${process.pid}`);
    });
    /** Runs a block of a page with the image of this test, built on what is here. */
    const follow = async (block: string): Promise<string> => {
      const script = `docker() { command docker "$1" --build-arg NODE=${base.name} "\${@:2}"; }
${block.replaceAll(/\bupper:1\b|registry\.example\/my-worker:1/g, image).replaceAll('run upper', `run ${name}`)}`;
      const { stdout } = await promisify(execFile)('bash', ['--norc', '-ec', script], {
        env: {
          ...process.env,
          PATH: `${resolve('node_modules/.bin')}:${process.env['PATH']}`,
          DOCKER_HOST: host,
          DOCKER_BUILDKIT: '0',
          BERTH_URL: fixture.server.url,
          BERTH_API_KEY: fixture.server.key,
        },
      });
      return stdout;
    };

    test('is built, deployed and run as its page says', async () => {
      assert.match(
        await follow(pageBlock('examples/dockerfile/README.md', 'docker build')),
        /Successfully tagged[^]*COMPLETED[^]*HELLO/,
      );
    });

    test('docs/clients/python-worker.md deploys an image by its name', async () => {
      const said = await follow(pageBlock('docs/clients/python-worker.md', 'npx berth deploy registry'));
      assert.match(said, new RegExp(image));
      await berth('rm', name, '--yes');
    });
    after(async () => {
      await docker.delete(`/images/${image}`, { force: true });
      await base.remove();
    });

    test('an image that neither Docker nor its registry has is refused, unless one insists', async () => {
      const registry = new TestRegistry(Buffer.concat([...imageArchive(['sh'])]));
      await registry.open();
      try {
        const missing = registry.image('v1');
        const refused = await berth('deploy', missing, '--name', 'missing');
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, /could not be pulled: .*--force deploys it all the same/s);
        const forced = await berth('deploy', missing, '--name', 'missing', '--force');
        assert.equal(forced.code, 0, forced.stderr);
        // An endpoint that exists is checked with its own credentials; it has none.
        const again = await berth('deploy', missing, '--name', 'missing');
        assert.equal(again.code, 1);
        assert.match(again.stderr, /could not be pulled/);
        await berth('rm', 'missing', '--yes');
      } finally {
        await registry.close();
      }
    });

    test('is built, deployed by its name and runs', async () => {
      const deployed = await berth<{ id: string; image: string; ready: boolean }>(
        'deploy',
        image,
        '--min',
        '1',
        '--wait',
      );
      assert.deepEqual(
        [deployed.code, deployed.json?.image, deployed.json?.ready],
        [0, image, true],
        deployed.stderr,
      );
      const ran = await berth<ExampleJobView>('run', name, '{"input": {"text": "hello"}}', '--sync');
      assert.deepEqual(
        [ran.json.status, (ran.json.output as { text: string }).text],
        ['COMPLETED', 'HELLO'],
        ran.stderr,
      );
      assert.match((await berth('logs', name)).stdout, /Starting upper-/);
      await berth('rm', deployed.json.id, '--yes');
      await waitUntilPasses(async () =>
        assert.deepEqual(
          await docker.get<ListedContainer[]>('/containers/json', {
            all: true,
            filters: { label: [`berth.label.endpoint=${deployed.json.id}`] },
          }),
          [],
        ),
      );
    });

    test('an image that does not exist is reported as such', async () => {
      const { code, stderr } = await berth(
        'deploy',
        'localhost:1/nobody/nothing:1',
        '--min',
        '1',
        '--wait',
        '--timeout',
        '3',
      );
      assert.equal(code, 1);
      assert.match(stderr, /the image localhost:1\/nobody\/nothing:1 could not be pulled/);
    });
  });
});
