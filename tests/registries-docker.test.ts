import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import { TestRegistry } from '../packages/cloud/src/engines/docker/docker-test-registry.ts';
import { imageArchive, PROGRAMS } from '../packages/testing/src/docker-test-image.mjs';
import type { ClusterView } from './clusters/cluster-client.ts';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { withDocker } from '../packages/testing/src/with-docker.ts';
import {
  createPod,
  parseLogEvents,
  waitForPodStatus,
  containerLogLines,
} from '../packages/testing/src/pod-client.ts';
import type { PodView } from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const GPU = 'NVIDIA A40';

await withDocker((host) => {
  const docker = new DockerClient(host);
  const layer = Buffer.concat([...imageArchive([...PROGRAMS, 'node'])]);
  for (const way of ['basic', 'bearer'] as const) {
    describe(`private images of a registry that asks for ${way} authentication`, () => {
      const registry = new TestRegistry(layer, way);
      let place: TestDatabase;
      let server: ServerProcess;
      let client: ApiClient;
      let tags = 0;
      const [right, wrong] = [{ id: '' }, { id: '' }];
      /** One that the daemon does not have yet. */
      const fresh = (): string => registry.image(`v${(tags += 1)}`);
      before(async () => {
        await registry.open();
        place = await createTestDatabase('sqlite');
        server = await startServerProcess(place, {
          BERTH_RATE_LIMITS: 'off',
          BERTH_DOCKER: host,
          BERTH_GPUS: `4x ${GPU}`,
        });
        client = server.client();
        await waitFor('DOCKER-1 is there', async () =>
          (await client.call('GET', '/v2/catalog/datacenters')).text.includes('DOCKER-1'),
        );
        right.id = (
          await client.call<{ id: string }>('POST', '/v2/registries', { name: 'right', ...registry.login })
        ).body.id;
        wrong.id = (
          await client.call<{ id: string }>('POST', '/v2/registries', {
            name: 'wrong',
            ...registry.login,
            password: 'open barley',
          })
        ).body.id;
      });
      after(async () => {
        assert.deepEqual(
          parseLogLines(server).filter(({ level }) => level === 'error'),
          [],
        );
        assert.ok(!server.log().includes(registry.login.password), 'no password in the log');
        await server.stop();
        for (let tag = 1; tag <= tags; tag += 1)
          await docker.delete(`/images/${registry.image(`v${tag}`)}`, { force: true }).catch(() => undefined);
        await registry.close();
        await place.drop();
      });

      test('a pod: without credentials, with the wrong ones, with the right ones', {
        timeout: 100_000,
      }, async () => {
        const cmd = ['sh', '-c', 'echo pulled; exec sleep 1000'];
        const reasonOf = async (body: object): Promise<string> => {
          const { id } = (await createPod(client, { image: fresh(), cmd, ...body })).body;
          const { statusDetail } = await waitForPodStatus(client, id, 'ERROR');
          const told = parseLogEvents((await client.call('GET', `/v2/pods/${id}/logs?follow=false`)).text);
          assert.ok(told.some(({ source, line }) => source === 'system' && /could not be pulled/.test(line)));
          assert.ok(!told.some(({ line }) => line.includes('open barley')));
          assert.equal((await client.call('DELETE', `/v2/pods/${id}`)).status, 204);
          return statusDetail ?? '';
        };
        assert.match(await reasonOf({}), /could not be pulled: .*asks for credentials: save some/);
        assert.match(
          await reasonOf({ registry: wrong.id }),
          /could not be pulled: .*does not accept the saved credentials/,
        );
        const { id } = (await createPod(client, { image: fresh(), cmd, registry: right.id })).body;
        await waitFor(
          'it runs',
          async () => (await containerLogLines(client, id)).includes('pulled'),
          60_000,
        );
        assert.equal((await client.call('DELETE', `/v2/pods/${id}`)).status, 204);
      });

      test('a deploy looks for the image with the credentials that it names', {
        timeout: 100_000,
      }, async () => {
        const image = fresh();
        const deploy = (...options: string[]) =>
          runBerth<{ id: string }>(['deploy', ...options, '--name', `deployed-${way}`, '--max', '0'], {
            BERTH_URL: server.url,
            BERTH_API_KEY: server.key,
          });
        for (const [options, problem] of [
          [[image], /asks for credentials: save some.*--force deploys it all the same/s],
          [[image, '--registry', 'wrong'], /does not accept the saved credentials/],
          [[image, '--registry', 'nosuch'], /no registry credentials "nosuch"; saved are: wrong, right/],
          [[registry.image('v9'), '--registry', 'right'], /v9 could not be pulled: .*unknown/],
        ] as const) {
          const refused = await deploy(...options);
          assert.equal(refused.code, 1, refused.stdout);
          assert.match(refused.stderr, problem);
        }
        const made = await deploy(image, '--registry', 'right');
        assert.equal(made.code, 0, made.stderr);
        // The endpoint keeps its credentials, and the next image is looked for with them.
        const again = await deploy(fresh());
        assert.equal(again.code, 0, again.stderr);
        const endpoint = await client.call<{ registry: string }>('GET', `/v2/serverless/${made.json.id}`);
        assert.equal(endpoint.body.registry, right.id);
        await client.call('DELETE', `/v2/serverless/${made.json.id}`);
      });

      test('a cluster, whose template names the credentials', { timeout: 100_000 }, async () => {
        const cluster = async (credentials: string): Promise<ClusterView> => {
          const template = (
            await client.call<{ id: string }>('POST', '/v2/templates', {
              name: `with ${credentials}`,
              image: fresh(),
              cmd: ['sh', '-c', 'exec sleep 1000'],
              registry: credentials,
            })
          ).body.id;
          const made = await client.call<ClusterView>('POST', '/v2/clusters', {
            name: 'c',
            type: 'TRAINING',
            compute: { gpuTypeId: GPU, gpuCountPerPod: 1, podCount: 2 },
            templateId: template,
          });
          assert.equal(made.status, 201, made.text);
          return made.body;
        };
        const good = await cluster(right.id);
        await waitFor(
          'both run',
          async () =>
            (await client.call<ClusterView>('GET', `/v2/clusters/${good.id}`)).body.pods.byStatus[
              'RUNNING'
            ] === 2,
          60_000,
        );
        const bad = await cluster(wrong.id);
        await waitFor(
          'both have failed',
          async () =>
            (await client.call<ClusterView>('GET', `/v2/clusters/${bad.id}`)).body.pods.byStatus['ERROR'] ===
            2,
          60_000,
        );
        const { pods } = (await client.call<{ pods: PodView[] }>('GET', `/v2/clusters/${bad.id}/pods`)).body;
        for (const { statusDetail } of pods)
          assert.match(statusDetail ?? '', /does not accept the saved credentials/);
        for (const { id } of [good, bad])
          assert.equal((await client.call('DELETE', `/v2/clusters/${id}`)).status, 204);
      });

      test('workers of an endpoint: the reason is in the job and the worker; right credentials fix it', {
        timeout: 100_000,
      }, async () => {
        const made = await client.call<{ id: string }>('POST', '/v2/serverless', {
          name: 'private',
          type: 'QUEUE',
          image: fresh(),
          cmd: ['sh', '-c', 'echo worker; exec sleep 1000'],
          registry: wrong.id,
          cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
          scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
          workers: { min: 1, max: 1 },
        });
        assert.equal(made.status, 201, made.text);
        const workers = async (): Promise<{
          reason: string | null;
          workers: { id: string; status: string }[];
        }> =>
          (
            await client.call<{ reason: string | null; workers: { id: string; status: string }[] }>(
              'GET',
              `/v2/serverless/${made.body.id}/workers`,
            )
          ).body;
        await waitFor(
          'the reason is told',
          async () => /does not accept the saved credentials/.test((await workers()).reason ?? ''),
          60_000,
        );
        assert.equal(
          (await client.call('PATCH', `/v2/serverless/${made.body.id}`, { registry: right.id })).status,
          200,
        );
        await waitFor(
          'a worker runs',
          async () => {
            const [worker] = (await workers()).workers;
            return (
              worker !== undefined &&
              (
                await client.call(
                  'GET',
                  `/v2/serverless/${made.body.id}/workers/${worker.id}/logs?follow=false`,
                )
              ).text.includes('"line":"worker"')
            );
          },
          60_000,
        );
        assert.equal((await client.call('DELETE', `/v2/serverless/${made.body.id}`)).status, 204);
      });
    });
  }
});
