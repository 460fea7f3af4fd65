import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import Docker from 'dockerode';
import { optionsOf } from '../packages/cloud/src/engines/docker/finding.ts';
import { imageArchive } from '../scripts/docker-test-image.mjs';
import { itselfSuite } from './pod-access/itself.suite.ts';
import { portsSuite } from './pod-access/ports.suite.ts';
import { podStage } from './pod-access/stage.ts';
import { openTerminal, refusedTerminal } from './pod-access/terminal-client.ts';
import { terminalSuite } from './pod-access/terminal.suite.ts';
import { usageSuite } from './pod-access/usage.suite.ts';
import { withDocker } from './support/docker.ts';
import { dockerEngine } from './support/engine-under-test.ts';
import { until } from './support/serverless.ts';

await withDocker((host) => {
  describe('access to pods, on Docker', () => {
    const stage = podStage(() => dockerEngine(host), { dataCenterId: 'DOCKER-1', sharesPorts: false });
    portsSuite(stage);
    terminalSuite(stage);
    itselfSuite(stage);
    usageSuite(stage);

    describe('an image with nothing but its program', () => {
      const docker = new Docker(optionsOf(host));
      const image = `localhost/berth-bare:p${process.pid}`;
      before(async () => {
        const answer = await docker.importImage(Readable.from(imageArchive(['node'])), {
          repo: 'localhost/berth-bare',
          tag: `p${process.pid}`,
        });
        await Array.fromAsync(answer as unknown as AsyncIterable<Buffer>);
      });
      after(() => docker.getImage(image).remove({ force: true }));

      test('has no shell, and says so; its own commands run, and end with their client', async () => {
        const program = '/bin/node';
        const id = await stage.pod({ image, cmd: [program, '-e', 'setInterval(() => {}, 1000)'] });
        const bearer = { authorization: `Bearer ${stage.server().key}` };
        const path = (query = ''): string =>
          `${stage.server().url.replace(/^http/, 'ws')}/v2/pods/${id}/terminal${query}`;
        const refused = await refusedTerminal(path(), bearer);
        assert.deepEqual(
          [refused.status, /there is no shell in .*: neither bash nor sh/.test(refused.detail)],
          [400, true],
          refused.detail,
        );
        const ran = await openTerminal(path(`?cmd=${program}&cmd=-p&cmd=6*7`), bearer);
        assert.equal((await ran.ended).exit?.exitCode, 0);
        assert.equal(ran.stdout().toString(), '42\n');
        const running = async (): Promise<number> =>
          ((await docker.getContainer(`berth-${id}`).top()).Processes as string[][]).filter((words) =>
            words.join(' ').includes('forever'),
          ).length;
        const stubborn =
          'process.on("SIGHUP", () => {}); console.log("up"); setInterval(() => {}, 1000); "forever"';
        const left = await openTerminal(
          path(`?cmd=${program}&cmd=-e&cmd=${encodeURIComponent(stubborn)}`),
          bearer,
        );
        await left.shows('up');
        assert.equal(await running(), 1);
        left.cut();
        await until('it ends', async () => (await running()) === 0);
      });
    });
  });
});
