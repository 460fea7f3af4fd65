import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import type { InspectedContainer } from '../packages/cloud/src/engines/docker/client/docker-objects.ts';
import { createTestImage } from '../packages/testing/src/docker-test-image.mjs';
import { containerLogLines } from '../packages/testing/src/pod-client.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { withDocker } from '../packages/testing/src/with-docker.ts';
import { DockerPods } from './isolation/docker-pod-fixture.ts';

/** Processes and threads that one container may have here. */
const PIDS = 60;
/** Forks that the kernel refuses before the test is satisfied. */
const REFUSED = 500;

/** Forks without end, and prints what the kernel counts in its own cgroup. */
const BOMB = String.raw`
const fs = require('node:fs');
const folder = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].find((path) => fs.existsSync(path + '/pids.max'));
const read = (name) => fs.readFileSync(folder + '/' + name, 'utf8').trim();
// A fork that fails ends a shell: this one begins again.
const light = () => {
  const shell = require('node:child_process').spawn('sh', ['-c', 'bomb() { bomb | bomb & }; while :; do bomb; done'], { stdio: 'ignore' });
  shell.on('error', () => setTimeout(light, 50));
  shell.on('exit', () => setTimeout(light, 50));
};
light();
setInterval(() => console.log('pids ' + read('pids.current') + ' of ' + read('pids.max') + ', refused ' + (/max (\d+)/.exec(read('pids.events')) ?? [])[1]), 100);
`;

await withDocker((host) => {
  describe('a fork bomb in a container', () => {
    const docker = new DockerClient(host);
    let image: { name: string; remove(): Promise<void> };
    let pods: DockerPods;

    before(async () => {
      image = await createTestImage(host, `localhost/berth-fork-bomb:p${process.pid}`);
      pods = await DockerPods.start(host, image.name, `pids: ${PIDS}`);
    });
    after(async () => {
      await pods.stop();
      await image.remove();
    });

    test('is held at the limit, seen from inside, while others make processes; and it is deleted', async () => {
      const [mallory, victim] = [await pods.account('mallory'), await pods.account('victim')];
      const bomb = await pods.run(mallory, BOMB);
      const counts = await waitFor('the kernel has refused many forks', async () => {
        const found = (await containerLogLines(mallory, bomb.id)).flatMap((line) => {
          const [, current, max, refused] = /^pids (\d+) of (\w+), refused (\d+)$/.exec(line) ?? [];
          return max === undefined ? [] : [{ current: Number(current), max, refused: Number(refused) }];
        });
        return (found.at(-1)?.refused ?? 0) >= REFUSED && found;
      });
      assert.deepEqual([...new Set(counts.map(({ max }) => max))], [String(PIDS)]);
      assert.ok(counts.every(({ current }) => current <= PIDS));
      assert.ok(
        counts.some(({ current }) => current >= PIDS - 5),
        JSON.stringify(counts),
      );

      const other = await pods.run(
        victim,
        `const { spawnSync } = require('node:child_process');
         for (let made = 0; made < 100; made += 1) if (spawnSync('true').status !== 0) throw new Error('no process');
         console.log('100 processes'); setInterval(() => {}, 1000);`,
      );
      await waitFor('others make processes', async () =>
        (await containerLogLines(victim, other.id)).includes('100 processes'),
      );
      assert.equal((await mallory.call('DELETE', `/v2/pods/${bomb.id}`)).status, 204);
      await waitFor('the container is gone', async () =>
        docker.get<InspectedContainer>(`/containers/berth-${bomb.id}/json`).then(
          () => false,
          () => true,
        ),
      );
    });
  });
});
