import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { createRunningPod, podLog, processesOfInstance } from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const DISK_MB = 160;
/** The reserve takes a tenth of so small a disk. */
const RESERVE_BYTES = 14_000_000;
const CLIENTS = 4;
/** How long service may take to be back after there is space. */
const RECOVERY_MS = 1_000;
const ENDPOINT = {
  name: 'jobs',
  type: 'QUEUE',
  image: 'local/shell',
  cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  workers: { min: 0, max: 0 },
};

describe('a full disk', { skip: process.getuid?.() !== 0 || process.platform !== 'linux' }, () => {
  const data = mkdtempSync(join(tmpdir(), 'berth-full-'));
  const ballast = join(data, 'ballast');
  /** Ends the load, also when an assertion fails. */
  const stop = new AbortController();
  let server: ServerProcess;
  let client: ApiClient;

  const start = async (): Promise<void> => {
    server = await startServerProcess({ data, url: '' }, { BERTH_RATE_LIMITS: 'off' });
    client = server.client();
  };
  /** Something else takes all that is left, to the last byte. */
  const fill = (): void => {
    const file = openSync(ballast, 'a');
    for (let piece = Buffer.alloc(1_000_000, 1); piece.length > 0; ) {
      try {
        if (writeSync(file, piece) < piece.length) break;
      } catch {
        piece = piece.subarray(0, Math.floor(piece.length / 2));
      }
    }
    closeSync(file);
  };
  const create = async (path: string, body: object): Promise<string> => {
    const { status, body: made, text } = await client.call<{ id: string }>('POST', path, body);
    assert.equal(status, 201, text);
    return made.id;
  };
  const submit = (endpointId: string): ReturnType<ApiClient['call']> =>
    client.call('POST', `/v2/${endpointId}/run`, { input: 'x'.repeat(500) });

  before(async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', data]);
    await start();
  });
  after(async () => {
    stop.abort();
    await server.stop();
    execFileSync('umount', [data]);
    rmdirSync(data);
  });

  test('deletes work, a restart succeeds, nothing acknowledged is lost, and service is back at once', async () => {
    await waitFor(
      'the reserve',
      () => existsSync(join(data, 'reserve')) && statSync(join(data, 'reserve')).size >= RESERVE_BYTES,
    );
    const endpointId = await create('/v2/serverless', ENDPOINT);
    const doomed = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        create('/v2/serverless', { ...ENDPOINT, name: `doomed ${index}` }),
      ),
    );
    for (const id of doomed) assert.equal((await submit(id)).status, 200);

    const acknowledged: string[] = [];
    const statuses = new Set<number>();
    /** Load that does not end: what it is refused, it tries again. */
    const load = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const answer = await submit(endpointId).catch(() => undefined);
        if (answer !== undefined) statuses.add(answer.status);
        if (answer?.status === 200) acknowledged.push((answer.body as { id: string }).id);
        else await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const loads = Array.from({ length: CLIENTS }, () => load());
    await waitFor('some jobs', () => acknowledged.length > 200);
    fill();
    await waitFor('new jobs are refused', async () => (await submit(endpointId)).status === 503);

    // All the while something else takes every byte that is freed.
    for (const id of doomed.slice(0, 3)) {
      fill();
      const { status, text } = await client.call('DELETE', `/v2/serverless/${id}`);
      assert.equal(status, 204, text);
    }
    assert.equal((await client.call('GET', '/v2/serverless')).status, 200);
    const kept = acknowledged.at(-1) ?? '';
    assert.equal((await client.call('GET', `/v2/${endpointId}/status/${kept}`)).status, 200);

    fill();
    await server.kill();
    fill();
    await start();
    assert.equal((await submit(endpointId)).status, 503, 'it is full still');
    for (const id of doomed.slice(3)) {
      fill();
      const { status, text } = await client.call('DELETE', `/v2/serverless/${id}`);
      assert.equal(status, 204, text);
    }

    const before = acknowledged.length;
    const from = performance.now();
    rmSync(ballast);
    await waitFor('jobs are accepted again', async () => (await submit(endpointId)).status === 200);
    const took = performance.now() - from;
    assert.ok(took < RECOVERY_MS + 500, `service was back after ${took} ms`);
    await waitFor('so are those of the load', () => acknowledged.length > before + 50);
    stop.abort();
    await Promise.all(loads);
    assert.deepEqual([...statuses].sort(), [200, 503]);
    for (const id of acknowledged) {
      const { status } = await client.call('GET', `/v2/${endpointId}/status/${id}`);
      assert.equal(status, 200, `job ${id} of ${acknowledged.length} was acknowledged and is lost`);
    }
    await waitFor('the reserve is whole again', () => statSync(join(data, 'reserve')).size >= RESERVE_BYTES);
  });

  test('a nearly full disk is shared: an account that floods the queue does not get the last of it', async () => {
    await waitFor('there is space', async () => (await client.call('GET', '/readyz')).status === 200);
    const [flooder, other] = await Promise.all(
      ['flooder', 'other'].map(async (name) => {
        const { body } = await client.call<{ key: string }>('POST', '/v2/accounts', { name });
        const own = server.client(body.key);
        const made = await own.call<{ id: string }>('POST', '/v2/serverless', ENDPOINT);
        assert.equal(made.status, 201, made.text);
        return (bytes: number) => own.call('POST', `/v2/${made.body.id}/run`, { input: 'x'.repeat(bytes) });
      }),
    );
    assert.ok(flooder !== undefined && other !== undefined);
    for (let job = 0; job < 12; job += 1) assert.equal((await flooder(1_000_000)).status, 200);
    // Something else leaves 9 MB: less than a twentieth of the disk and the last 4 MB, and more than these.
    const { bavail, bsize } = statfsSync(data);
    writeFileSync(ballast, Buffer.alloc(bavail * bsize - 9_000_000));
    const refused = await waitFor('the flooder is refused', async () => {
      const answer = await flooder(1_000);
      return answer.status === 507 && answer;
    });
    assert.match(JSON.stringify(refused.body), /the disk is nearly full.*more than its share/);
    assert.equal((await other(1_000)).status, 200);
    rmSync(ballast);
    await waitFor('there is space for all', async () => (await flooder(1_000)).status === 200);
  });

  test('a pod that writes without end does not fill it, and is deleted though it is full', async () => {
    await waitFor('there is space', async () => (await client.call('GET', '/readyz')).status === 200);
    const pod = await createRunningPod(client, { cmd: ['yes', 'x'.repeat(99)] });
    const { bavail: before, bsize } = statfsSync(data);
    await waitFor('lines are dropped', async () => {
      const lines = await podLog(client, pod.id, '&source=system');
      return lines.some(({ line }) => line.includes('lines dropped, it wrote more than'));
    });
    const taken = (before - statfsSync(data).bavail) * bsize;
    assert.ok(taken < 40_000_000, `it took ${taken} bytes`);
    fill();
    await waitFor('it is full', async () => (await client.call('GET', '/readyz')).status === 503);
    const { status, text } = await client.call('DELETE', `/v2/pods/${pod.id}`);
    assert.equal(status, 204, text);
    await waitFor('nothing of it runs', () => processesOfInstance(pod.id).length === 0);
    assert.equal(existsSync(join(data, 'instances', pod.id)), false);
    rmSync(ballast);
  });
});
