import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import {
  createRunningPod,
  getPod,
  podLog,
  processesOfInstance,
  waitForPodStatus,
} from '../packages/testing/src/pod-client.ts';
import type { PodView } from '../packages/testing/src/pod-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const DISK_MB = 300;
/** Most of it at once, and then 5 MB a second until nothing is left. */
const FILL = '(head -c 180000000 /dev/zero; while head -c 1000000 /dev/zero 2>/dev/null; do sleep 0.2; done)';
const THEN = 'echo full; exec sleep 1000';
const WAYS_TO_FILL: readonly (readonly [string, string])[] = [
  ['a file', `${FILL} > big; ${THEN}`],
  ['a temporary file', `${FILL} > /tmp/big; ${THEN}`],
  ['a file that it has deleted and still holds', `exec 3> gone; rm gone; ${FILL} >&3; ${THEN}`],
  ['its volume', `${FILL} > /workspace/big; ${THEN}`],
];

describe('pods that write files on a small disk', {
  skip: process.getuid?.() !== 0 || process.platform !== 'linux',
}, () => {
  const data = mkdtempSync(join(tmpdir(), 'berth-files-'));
  let server: ServerProcess;
  let other: ApiClient;
  let writer: ApiClient;
  let quiet: PodView;

  async function createAccount(name: string): Promise<{ key: string; client: ApiClient }> {
    const made = await server.client().call<{ key: string }>('POST', '/v2/accounts', { name });
    assert.equal(made.status, 201, made.text);
    return { key: made.body.key, client: server.client(made.body.key) };
  }

  const freeMb = (): number => {
    const { bavail, bsize } = statfsSync(data);
    return (bavail * bsize) / 1e6;
  };

  before(async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', data]);
    server = await startServerProcess({ data, url: '' }, { BERTH_RATE_LIMITS: 'off' });
    [other, writer] = (await Promise.all(
      ['other', 'writer'].map(async (name) => (await createAccount(name)).client),
    )) as [ApiClient, ApiClient];
    quiet = await createRunningPod(other);
  });
  after(async () => {
    for (const client of [other, writer]) {
      const { body } = await client.call<{ pods: PodView[] }>('GET', '/v2/pods');
      for (const { id } of body.pods) await client.call('DELETE', `/v2/pods/${id}`);
    }
    await server.stop();
    execFileSync('umount', ['--lazy', data]);
    rmdirSync(data);
  });

  for (const [what, command] of WAYS_TO_FILL)
    test(`one that fills it with ${what} is ended with the reason, and others notice nothing`, async () => {
      const { key } = await createAccount(`jobs beside ${what}`);
      const endpoint = await createQueueEndpoint(server.url, key);
      const made = await writer.call<{ id: string }>('POST', '/v2/network-volumes', {
        name: 'volume',
        size: 10,
        dataCenter: 'LOCAL-1',
      });
      const volumeId = made.body.id;
      const pod = await createRunningPod(writer, {
        cmd: ['sh', '-c', command],
        mounts: { network: [{ volumeId, path: '/workspace' }] },
      });
      let least = freeMb();
      while ((await getPod(writer, pod.id)).status === 'RUNNING') {
        least = Math.min(least, freeMb());
        const { status, text } = await endpoint.call('POST', 'run', { input: 1 });
        assert.equal(status, 200, `${text}; ${freeMb()} MB are free`);
      }
      const ended = await waitForPodStatus(writer, pod.id, 'ERROR');
      assert.match(ended.statusDetail ?? '', /No space: the disk of this machine has .* MB left/);
      const lines = (await podLog(writer, pod.id)).map(({ line }) => line);
      assert.ok(!lines.includes('full'), lines.join('\n'));
      assert.ok(
        lines.some((line) =>
          /^No space: .* of all instances this one wrote most of late: \d+\.\d MB/.test(line),
        ),
        lines.join('\n'),
      );
      assert.ok(least > 4, `only ${least} MB were left`);
      assert.deepEqual(processesOfInstance(pod.id), []);
      assert.equal((await getPod(other, quiet.id)).status, 'RUNNING');
      assert.equal((await writer.call('DELETE', `/v2/pods/${pod.id}`)).status, 204);
      assert.equal((await writer.call('DELETE', `/v2/network-volumes/${volumeId}`)).status, 204);
      await waitFor('the space is free again', () => freeMb() > 190);
    });
});
