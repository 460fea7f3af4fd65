import assert from 'node:assert/strict';
import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import { deployedFolderStories } from '../packages/testing/src/deployed-folder-stories.ts';
import { imageArchive, PROGRAMS } from '../packages/testing/src/docker-test-image.mjs';
import { dockerEngineFixture } from '../packages/testing/src/engine-fixture.ts';
import { berthLayer } from '../packages/testing/src/kubernetes/berth-layer.ts';
import { writeImageTar } from '../packages/testing/src/kubernetes/image-tar.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { withDocker } from '../packages/testing/src/with-docker.ts';

const RUNNER_IMAGE = `localhost/berth-runner:p${process.pid}`;
const MISSING_IMAGE = 'localhost:1/nobody/runner-python:1';

await withDocker((host) =>
  deployedFolderStories(
    'Docker',
    async () => {
      const engine = await dockerEngineFixture(host, () => loadRunnerImage(host));
      return { ...engine, env: { ...engine.env, BERTH_RUNNER_PYTHON_IMAGE: MISSING_IMAGE } };
    },
    () => RUNNER_IMAGE,
    (fixture, deploy) => {
      test('a runner image that is not there is named, with the setting that it comes from', async () => {
        const folder = createTemporaryFolder('snake', { 'handler.py': 'def handler(job): return 1' });
        const endpoint = await deploy(folder.path);
        const job = await fixture.run(endpoint, 1);
        const reason = await fixture.waitForReason(endpoint, job, /could not be pulled/);
        assert.match(reason, /localhost:1\/nobody\/runner-python:1/);
        assert.match(reason, /runner image of local\/\S*snake:\w+, from the setting runner\.image/);
        await fixture.remove(endpoint);
        folder.remove();
      });
    },
  ),
);

/** An image like that of deploy/docker/Dockerfile, with Berth from its sources. */
async function loadRunnerImage(host: string) {
  const docker = new DockerClient(host);
  const folder = mkdtempSync(join(tmpdir(), 'berth-runner-'));
  const archive = join(folder, 'image.tar');
  writeImageTar(
    archive,
    [Buffer.concat([...imageArchive([...PROGRAMS, 'node'])]), berthLayer()],
    [
      {
        name: RUNNER_IMAGE,
        config: {
          Entrypoint: ['berth'],
          Cmd: ['up'],
          Env: ['PATH=/bin'],
          WorkingDir: '/data',
          User: '10001',
        },
      },
    ],
  );
  const messages = await text(
    await docker.stream('POST', '/images/load', { upload: createReadStream(archive) }),
  );
  rmSync(folder, { recursive: true });
  assert.match(messages, /Loaded image/, messages);
  return {
    name: RUNNER_IMAGE,
    remove: async () => void (await docker.delete(`/images/${RUNNER_IMAGE}`, { force: true })),
  };
}
