import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { DockerClient } from '../../packages/cloud/src/engines/docker/client/docker-client.ts';
import type { ContainerProcesses } from '../../packages/cloud/src/engines/docker/client/docker-objects.ts';
import { imageArchive, importImage } from '../../packages/testing/src/docker-test-image.mjs';
import { podSelfAccessSuite } from './pod-self-access.suite.ts';
import { podPortsSuite } from './pod-ports.suite.ts';
import { podAccessFixture } from '../../packages/testing/src/pod-access-fixture.ts';
import { openTerminal, openRefusedTerminal } from '../../packages/testing/src/terminal-client.ts';
import { podTerminalSuite } from './pod-terminal.suite.ts';
import { podUsageSuite } from './pod-usage.suite.ts';
import { withDocker } from '../../packages/testing/src/with-docker.ts';
import { dockerEngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

await withDocker((host) => {
  describe('access to pods, on Docker', () => {
    const fixture = podAccessFixture(() => dockerEngineFixture(host), {
      dataCenterId: 'DOCKER-1',
      sharesPorts: false,
    });
    podPortsSuite(fixture);
    podTerminalSuite(fixture);
    podSelfAccessSuite(fixture);
    podUsageSuite(fixture);

    describe('an image with nothing but its program', () => {
      const docker = new DockerClient(host);
      const image = `localhost/berth-bare:p${process.pid}`;
      before(async () => {
        await importImage(host, image, Readable.from(imageArchive(['node'])), []);
      });
      after(() => docker.delete(`/images/${image}`, { force: true }));

      test('has no shell, and says so; its own commands run, and end with their client', async () => {
        const program = '/bin/node';
        const id = await fixture.createPod({ image, cmd: [program, '-e', 'setInterval(() => {}, 1000)'] });
        const bearer = { authorization: `Bearer ${fixture.server().key}` };
        const path = (query = ''): string =>
          `${fixture.server().url.replace(/^http/, 'ws')}/v2/pods/${id}/terminal${query}`;
        const refused = await openRefusedTerminal(path(), bearer);
        assert.deepEqual(
          [refused.status, /there is no shell in .*: neither bash nor sh/.test(refused.detail)],
          [400, true],
          refused.detail,
        );
        const ran = await openTerminal(path(`?cmd=${program}&cmd=-p&cmd=6*7`), bearer);
        assert.equal((await ran.ended).exit?.exitCode, 0);
        assert.equal(ran.stdout().toString(), '42\n');
        const running = async (): Promise<number> =>
          (await docker.get<ContainerProcesses>(`/containers/berth-${id}/top`)).Processes.filter((words) =>
            words.join(' ').includes('forever'),
          ).length;
        const stubborn =
          'process.on("SIGHUP", () => {}); console.log("up"); setInterval(() => {}, 1000); "forever"';
        const left = await openTerminal(
          path(`?cmd=${program}&cmd=-e&cmd=${encodeURIComponent(stubborn)}`),
          bearer,
        );
        await left.waitForOutput('up');
        assert.equal(await running(), 1);
        left.terminate();
        await waitFor('it ends', async () => (await running()) === 0);
      });
    });
  });
});
