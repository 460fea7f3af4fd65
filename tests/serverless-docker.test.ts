import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import type { InspectedContainer } from '../packages/cloud/src/engines/docker/client/docker-objects.ts';
import { DockerTestProxy } from '../packages/cloud/src/engines/docker/docker-test-proxy.ts';
import { TestRegistry } from '../packages/cloud/src/engines/docker/docker-test-registry.ts';
import { imageArchive, PROGRAMS } from '../packages/testing/src/docker-test-image.mjs';
import { waitForReadyWorkers, serverlessFixture } from '../packages/testing/src/serverless-fixture.ts';
import { withDocker } from '../packages/testing/src/with-docker.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { dockerEngineFixture } from '../packages/testing/src/engine-fixture.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import { listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { queueWorkerSource } from '../packages/testing/src/worker-sources.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const QUEUE_DELAY = { type: 'QUEUE_DELAY', queueDelay: 4 };
const SLOW = queueWorkerSource('async ({ ms }) => { await pause(ms); return process.env.MARK; }');

await withDocker((host) => {
  describe('serverless on Docker', () => {
    const fixture = serverlessFixture(() => dockerEngineFixture(host));
    const docker = new DockerClient(host);
    const registry = new TestRegistry(Buffer.concat([...imageArchive([...PROGRAMS, 'node'])]));
    before(() => registry.open());
    after(() => registry.close());

    test('the first job starts a container, idleness ends it, and nothing of it stays but its log', async () => {
      const endpoint = await fixture.deploy('first', queueWorkerSource('async (input) => input'), {
        scaling: QUEUE_DELAY,
        workers: { min: 0, max: 2, idleTimeout: 1 },
      });
      assert.equal((await fixture.engine.instancesOf(endpoint)).size, 0);
      const job = await fixture.runSync(endpoint, { hello: 'world' });
      assert.deepEqual([job.status, job.output], ['COMPLETED', { hello: 'world' }]);
      const [worker] = await listWorkers(fixture.client, endpoint);
      const [[id, container = ''] = []] = await fixture.engine.instancesOf(endpoint);
      assert.equal(id, worker?.id);
      const volume =
        (await docker.get<InspectedContainer>(`/containers/${container}/json`)).Mounts.find(
          ({ Destination: path }) => path === '/data',
        )?.Name ?? '';
      await waitFor(
        'the idle container is gone',
        async () => (await fixture.engine.instancesOf(endpoint)).size === 0,
      );
      await assert.rejects(docker.get(`/volumes/${volume}`), { status: 404 });
      await waitFor(
        'the worker is gone',
        async () => (await listWorkers(fixture.client, endpoint)).length === 0,
      );
      const logs = await fixture.client.call(
        'GET',
        `/v2/serverless/${endpoint}/workers/${worker?.id}/logs?follow=false`,
      );
      assert.match(logs.text, /Starting localhost\/berth-story/);
      assert.match(logs.text, /Ended with exit code 0/);
    });

    test('a release lets the busy container finish and gives the next job to a new one', async () => {
      const endpoint = await fixture.deploy('release', SLOW, {
        env: { MARK: 'old' },
        workers: { min: 1, max: 1 },
      });
      const [old] = await waitForReadyWorkers(fixture, endpoint, 1);
      const slow = await fixture.run(endpoint, { ms: 1500 });
      await waitFor(
        'the job runs',
        async () => (await fixture.status(endpoint, slow)).status === 'IN_PROGRESS',
      );
      assert.equal(
        (await fixture.client.call('PATCH', `/v2/serverless/${endpoint}`, { env: { MARK: 'new' } })).status,
        200,
      );
      const next = await fixture.run(endpoint, { ms: 1 });
      assert.deepEqual(
        [
          (await fixture.waitForEnd(endpoint, slow)).output,
          (await fixture.waitForEnd(endpoint, next)).output,
        ],
        ['old', 'new'],
      );
      await waitFor(
        'the old container is gone',
        async () => !(await fixture.engine.instancesOf(endpoint)).has(old ?? ''),
      );
      const { body } = await fixture.client.call<{ rollout: { percentOnLatest: number } }>(
        'GET',
        `/v2/serverless/${endpoint}/releases`,
      );
      assert.equal(body.rollout.percentOnLatest, 100);
      await fixture.remove(endpoint);
    });

    test('an image that cannot be pulled is the reason why jobs wait, in log and list of workers', async () => {
      const endpoint = await fixture.deploy('nowhere', '', {
        image: 'localhost:1/nobody/nothing:1',
        args: '',
      });
      const job = await fixture.run(endpoint, 1);
      const reason = await fixture.waitForReason(endpoint, job, /could not be pulled/);
      assert.match(reason, /localhost:1\/nobody\/nothing:1/);
      // Between the end of one start and the beginning of the next the list has nothing to say for a moment.
      await waitFor('the list of workers says so', async () => {
        const { body } = await fixture.client.call<{ reason: string }>(
          'GET',
          `/v2/serverless/${endpoint}/workers`,
        );
        return /could not be pulled/.test(body.reason);
      });
      const wrong = await fixture.deploy('misspelt', '', { image: 'Not/A-Name', args: '' });
      assert.match(
        await fixture.waitForReason(wrong, await fixture.run(wrong, 1), /is not a valid image name/),
        /Not\/A-Name/,
      );
      await fixture.remove(endpoint);
    });

    test('a private image is pulled with the credentials of the endpoint, and not without', {
      timeout: 120_000,
    }, async () => {
      const image = registry.image('v1');
      const closed = await fixture.deploy('closed', queueWorkerSource('async (n) => n'), { image });
      assert.match(
        await fixture.waitForReason(closed, await fixture.run(closed, 1), /could not be pulled/),
        /auth|denied|credentials/i,
      );
      const saved = await fixture.client.call<{ id: string }>('POST', '/v2/registries', {
        name: 'private',
        ...registry.login,
      });
      const opened = await fixture.deploy('opened', queueWorkerSource('async (n) => n'), {
        image,
        registry: saved.body.id,
      });
      assert.equal((await fixture.runSync(opened, 5)).output, 5);
      await fixture.remove(opened);
      await docker.delete(`/images/${image}`, { force: true });
    });

    test('an endpoint whose image is still being pulled can be removed at once', async () => {
      const saved = await fixture.client.call<{ id: string }>('POST', '/v2/registries', {
        name: 'silent',
        ...registry.login,
      });
      const endpoint = await fixture.deploy('pulling', '', {
        image: registry.image(registry.silentTag),
        args: '',
        registry: saved.body.id,
      });
      const job = await fixture.run(endpoint, 1);
      await fixture.waitForReason(endpoint, job, /starting: Pulling the image/);
      const from = performance.now();
      await fixture.remove(endpoint);
      // The pull never ends.
      assert.ok(performance.now() - from < 30_000);
    });

    test('containers reach their endpoints and nothing else, and nobody else reaches them there', async () => {
      const endpoint = await fixture.deploy(
        'curious',
        queueWorkerSource(
          'async (path) => (await fetch(new URL(path, process.env.RUNPOD_WEBHOOK_PING))).status',
        ),
      );
      assert.deepEqual(
        [
          await fixture.runSync(endpoint, '/v2/serverless'),
          await fixture.runSync(endpoint, '/graphql'),
          await fixture.runSync(endpoint, `/v2/${endpoint}/health`),
        ].map(({ output }) => output),
        [403, 403, 401],
      );
      const { port } = new URL(fixture.server.url);
      const outside = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
        /^(lo|berth|docker|br-|veth|podman)/.test(name)
          ? []
          : addresses.filter(({ family }) => family === 'IPv4'),
      );
      for (const { address } of outside)
        await assert.rejects(
          fetch(`http://${address}:${port}/healthz`, { signal: AbortSignal.timeout(5_000) }),
        );
      await fixture.remove(endpoint);
    });
  });

  test('DOCKER-1 is there as soon as a daemon answers, and a server that has none is up all the same', {
    timeout: 60_000,
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-link-'));
    const link = new DockerTestProxy(join(folder, 'docker.sock'), host);
    const place = await createTestDatabase('sqlite');
    const server = await startServerProcess(place, { BERTH_DOCKER: link.host });
    const dataCenters = async (): Promise<string> =>
      (
        await server.client().call<{ dataCenters: { id: string }[] }>('GET', '/v2/catalog/datacenters')
      ).body.dataCenters
        .map(({ id }) => id)
        .join(' ');
    assert.equal(await dataCenters(), 'LOCAL-1');
    await link.open();
    await waitFor(
      'the data center is there',
      async () => (await dataCenters()) === 'LOCAL-1 DOCKER-1',
      30_000,
    );
    assert.equal(await server.stop(), 0);
    await link.close();
    await place.drop();
    rmSync(folder, { recursive: true });
  });
});
