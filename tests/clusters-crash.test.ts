import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterView, ClusterPod } from './clusters/cluster-client.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { processesOfInstance, SLEEP_COMMAND } from '../packages/testing/src/pod-client.ts';
import { seededNumbers } from '../packages/testing/src/property-testing.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const A40 = 'NVIDIA A40';
const ENV = { BERTH_RATE_LIMITS: 'off', BERTH_GPUS: `200x ${A40}` };
const ROUNDS = 4;

for (const kind of DATABASES) {
  describe(`clusters when Berth is killed, on ${kind}`, () => {
    let place: TestDatabase;
    let server: ServerProcess;
    before(async () => {
      place = await createTestDatabase(kind);
      server = await startServerProcess(place, ENV);
    });
    after(async () => {
      await server.stop();
      await place.drop();
    });

    test('while some are made and others deleted: each is there whole or not at all', {
      timeout: 120_000,
    }, async () => {
      const random = seededNumbers();
      const told = new Set<string>();
      for (let round = 0; round < ROUNDS; round += 1) {
        const client = server.client();
        const making = Array.from({ length: 6 }, async (_, index) => {
          await pause(random() * 60);
          const made = await client.call<ClusterView>('POST', '/v2/clusters', {
            name: `c${round}-${index}`,
            type: 'TRAINING',
            compute: { gpuTypeId: A40, gpuCountPerPod: 1, podCount: 3 },
            image: 'local/shell',
            cmd: SLEEP_COMMAND,
          });
          if (made.status === 201) told.add(made.body.id);
        });
        const removing = [...told].slice(0, 2).map(async (id) => {
          await pause(random() * 60);
          told.delete(id);
          await client.call('DELETE', `/v2/clusters/${id}`);
        });
        const asked = Promise.allSettled([...making, ...removing]);
        await pause(10 + random() * 100);
        await server.kill();
        await asked;
        server = await startServerProcess(place, ENV);
        const { clusters } = (await server.client().call<{ clusters: ClusterView[] }>('GET', '/v2/clusters'))
          .body;
        const { pods } = (
          await server.client().call<{ pods: ClusterPod[] }>('GET', '/v2/pods?includeClusterPods=true')
        ).body;
        for (const {
          id,
          pods: { total },
        } of clusters)
          assert.deepEqual(
            [
              total,
              pods
                .filter(({ cluster }) => cluster.id === id)
                .map(({ cluster }) => cluster.rank)
                .sort(),
            ],
            [3, [0, 1, 2]],
            id,
          );
        for (const { cluster } of pods)
          assert.ok(
            clusters.some(({ id }) => id === cluster.id),
            'no member without its cluster',
          );
        for (const id of told)
          assert.ok(
            clusters.some((one) => one.id === id),
            'what was told to be there is there',
          );
        for (const { id } of clusters) told.add(id);
      }
      const { clusters } = (await server.client().call<{ clusters: ClusterView[] }>('GET', '/v2/clusters'))
        .body;
      await waitFor(
        'all of them run',
        async () =>
          (
            await server.client().call<{ clusters: ClusterView[] }>('GET', '/v2/clusters')
          ).body.clusters.every(({ pods }) => pods.byStatus['RUNNING'] === 3),
        60_000,
      );
      const { pods } = (
        await server.client().call<{ pods: ClusterPod[] }>('GET', '/v2/pods?includeClusterPods=true')
      ).body;
      for (const { id } of clusters)
        assert.equal((await server.client().call('DELETE', `/v2/clusters/${id}`)).status, 204);
      for (const { id } of pods) assert.deepEqual(processesOfInstance(id), []);
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error'),
        [],
      );
    });
  });
}
