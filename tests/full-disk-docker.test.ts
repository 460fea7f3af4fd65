import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, afterEach, before, describe, test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import { TestRegistry } from '../packages/cloud/src/engines/docker/docker-test-registry.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import {
  fileArchive,
  imageArchive,
  importImage,
  PROGRAMS,
} from '../packages/testing/src/docker-test-image.mjs';
import {
  createPod,
  getPod,
  podLog,
  SLEEP_COMMAND,
  waitForPodStatus,
} from '../packages/testing/src/pod-client.ts';
import type { PodView } from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { smallDiskProblem, startSmallDiskDaemon } from '../packages/testing/src/small-disk-docker-daemon.ts';
import type { SmallDiskDaemon } from '../packages/testing/src/small-disk-docker-daemon.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const DOCKER_MB = 600;
const BERTH_MB = 600;
const IMAGE = `localhost/berth-small:p${process.pid}`;
const THEN = 'echo full; exec sleep 1000';
/** A part of it at once, and then 20 MB a second until nothing is left. */
const ZEROS =
  '(head -c 300000000 /dev/zero; while head -c 1000000 /dev/zero 2>/dev/null; do sleep 0.05; done)';
const WAYS_TO_FILL: readonly (readonly [string, string, 'docker' | 'berth'])[] = [
  ['a file', `${ZEROS} > /big; ${THEN}`, 'docker'],
  ['a file that it has deleted and still holds', `exec 3> /gone; rm /gone; ${ZEROS} >&3; ${THEN}`, 'docker'],
  ['a volume of its image', `${ZEROS} > /declared/big; ${THEN}`, 'docker'],
  ['the list of hosts that the daemon gives it', `${ZEROS} > /etc/hosts; ${THEN}`, 'docker'],
  ['its network volume', `${ZEROS} > /workspace/big; ${THEN}`, 'berth'],
];

describe('containers that write without end on small disks', { skip: smallDiskProblem() ?? false }, () => {
  const data = mkdtempSync(join(tmpdir(), 'berth-files-'));
  let daemon: SmallDiskDaemon;
  let server: ServerProcess;
  let other: ApiClient;
  let writer: ApiClient;
  let quiet: PodView;
  const pods: string[] = [];

  async function createAccount(name: string): Promise<ApiClient> {
    const made = await server.client().call<{ key: string }>('POST', '/v2/accounts', { name });
    assert.equal(made.status, 201, made.text);
    return server.client(made.body.key);
  }

  async function runPod(client: ApiClient, body: Record<string, unknown>): Promise<PodView> {
    const made = await createPod(client, { image: IMAGE, dataCenterIds: ['DOCKER-1'], ...body });
    assert.equal(made.status, 201, made.text);
    if (client === writer) pods.push(made.body.id);
    return made.body;
  }

  // Also where a test has failed.
  afterEach(async () => {
    for (const id of pods.splice(0)) await writer.call('DELETE', `/v2/pods/${id}`);
  });

  async function createVolume(): Promise<string> {
    const made = await writer.call<{ id: string }>('POST', '/v2/network-volumes', {
      name: 'volume',
      size: 10,
      dataCenter: 'DOCKER-1',
    });
    assert.equal(made.status, 201, made.text);
    return made.body.id;
  }

  const freeMb = (folder: string): number => {
    const { bavail, bsize } = statfsSync(folder);
    return (bavail * bsize) / 1e6;
  };

  before(async () => {
    daemon = await startSmallDiskDaemon(DOCKER_MB);
    await importImage(daemon.host, IMAGE, Readable.from(imageArchive([...PROGRAMS, 'yes'])), [
      'ENV PATH=/bin',
      'VOLUME ["/declared"]',
    ]);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${BERTH_MB}m`, 'tmpfs', data]);
    const config = join(data, 'berth.yaml');
    writeFileSync(config, 'dataCenters:\n  - { id: DOCKER-1, engine: docker }\n');
    server = await startServerProcess(
      { data, url: '' },
      { BERTH_CONFIG: config, BERTH_DOCKER: daemon.host, BERTH_RATE_LIMITS: 'off' },
    );
    [other, writer] = (await Promise.all(['other', 'writer'].map(createAccount))) as [ApiClient, ApiClient];
    quiet = await runPod(other, { cmd: SLEEP_COMMAND });
    await waitForPodStatus(other, quiet.id, 'RUNNING');
  });
  after(async () => {
    for (const client of [other, writer]) {
      const { body } = await client.call<{ pods: PodView[] }>('GET', '/v2/pods');
      for (const { id } of body.pods) await client.call('DELETE', `/v2/pods/${id}`);
      await waitFor('the pods are gone', async () => {
        const left = await client.call<{ pods: PodView[] }>('GET', '/v2/pods');
        return left.body.pods.length === 0;
      });
    }
    await server.stop();
    await daemon.stop();
    execFileSync('umount', ['--lazy', data]);
    rmdirSync(data);
  });

  /** It has ended for want of space, before nothing was left. */
  async function assertEnded(pod: PodView, folder: string): Promise<void> {
    let least = freeMb(folder);
    await waitFor(
      'the pod has ended',
      async () => {
        least = Math.min(least, freeMb(folder));
        return (await getPod(writer, pod.id)).status === 'ERROR';
      },
      60_000,
    );
    const { statusDetail } = await getPod(writer, pod.id);
    assert.match(statusDetail ?? '', /No space: the disk of this machine has .* MB left/);
    const lines = (await podLog(writer, pod.id)).map(({ line }) => line);
    assert.ok(!lines.includes('full'), lines.slice(-20).join('\n'));
    assert.ok(least > 4, `only ${least} MB were left`);
    assert.equal((await getPod(other, quiet.id)).status, 'RUNNING');
  }

  for (const [what, command, where] of WAYS_TO_FILL)
    test(`one that fills the disk with ${what} is ended with the reason, and others notice nothing`, async () => {
      const folder = where === 'docker' ? daemon.disk : data;
      const before = freeMb(folder);
      const volumeId = await createVolume();
      const pod = await runPod(writer, {
        cmd: ['sh', '-c', command],
        mounts: { network: [{ volumeId, path: '/workspace' }] },
      });
      await assertEnded(pod, folder);
      assert.equal((await writer.call('DELETE', `/v2/pods/${pod.id}`)).status, 204);
      assert.equal((await writer.call('DELETE', `/v2/network-volumes/${volumeId}`)).status, 204);
      await waitFor('the space is free again', () => freeMb(folder) > before - 10);
    });

  /** Somebody else takes all but so many megabytes of the daemon's disk. */
  function leave(megabytes: number): Disposable {
    const file = join(daemon.disk, 'of-somebody-else');
    execFileSync('fallocate', ['-l', `${Math.floor(freeMb(daemon.disk) - megabytes)}MB`, file]);
    return { [Symbol.dispose]: () => rmSync(file) };
  }

  test('one that fills it with output is ended with the reason', async () => {
    using _full = leave(120);
    // At a speed that a busy machine measures in time, as above.
    const lines = `yes ${'x'.repeat(500)} | head -c 1000000`;
    const pod = await runPod(writer, { cmd: ['sh', '-c', `while ${lines}; do sleep 0.05; done; ${THEN}`] });
    await assertEnded(pod, daemon.disk);
    assert.equal((await writer.call('DELETE', `/v2/pods/${pod.id}`)).status, 204);
  });

  test('an image that does not fit is not pulled to the end, and the pod says why', async (context) => {
    const registry = new TestRegistry(Buffer.concat([...fileArchive({ big: Buffer.alloc(200_000_000) })]));
    await registry.open();
    context.after(() => registry.close());
    using _full = leave(250);
    const login = await writer.call<{ id: string }>('POST', '/v2/registries', {
      name: 'registry',
      ...registry.login,
    });
    const pod = await runPod(writer, { image: registry.image('v1'), registry: login.body.id });
    let least = freeMb(daemon.disk);
    await waitFor('the pod says that there is no space', async () => {
      least = Math.min(least, freeMb(daemon.disk));
      const { statusDetail } = await getPod(writer, pod.id);
      return statusDetail?.includes('not enough space on the disk of Docker');
    });
    assert.ok(least > 4, `only ${least} MB were left`);
    assert.equal((await getPod(other, quiet.id)).status, 'RUNNING');
    assert.equal((await writer.call('DELETE', `/v2/pods/${pod.id}`)).status, 204);
    await waitFor('what was pulled is deleted', () => freeMb(daemon.disk) > 240);
  });

  test('on a full disk nothing starts, the rest runs and is deleted, and starts follow once there is space', async () => {
    const pod = await runPod(writer, { cmd: SLEEP_COMMAND });
    await waitForPodStatus(writer, pod.id, 'RUNNING');
    let waiting: PodView;
    {
      using _full = leave(0);
      waiting = await runPod(writer, { cmd: SLEEP_COMMAND });
      await waitFor('the pod says that there is no space', async () =>
        (await getPod(writer, waiting.id)).statusDetail?.includes('not enough space on the disk of Docker'),
      );
      assert.equal((await writer.call('DELETE', `/v2/pods/${pod.id}`)).status, 204);
      const docker = new DockerClient(daemon.host);
      await waitFor('its container is gone', async () => {
        const containers = await docker.get<{ Names: string[] }[]>('/containers/json', { all: true });
        return !containers.some(({ Names: names }) => names.includes(`/berth-${pod.id}`));
      });
      assert.equal((await getPod(other, quiet.id)).status, 'RUNNING');
    }
    await waitForPodStatus(writer, waiting.id, 'RUNNING');
  });
});
