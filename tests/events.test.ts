import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deployHandler } from '../packages/testing/src/deploy-handler.ts';
import { readEvents } from '../packages/testing/src/event-reader.ts';
import { createRunningPod } from '../packages/testing/src/pod-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { clearedServerFixture } from '../packages/testing/src/cleared-server-fixture.ts';
import { createVolume } from '../packages/testing/src/s3-test-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import type { DatabaseKind } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

// The limits are waited for.
describe('GET /v2/events', { concurrency: true }, () => DATABASES.forEach(eventsSuite));

function eventsSuite(kind: DatabaseKind): void {
  describe(`GET /v2/events, on ${kind}`, { concurrency: false }, () => {
    const fixture = clearedServerFixture({}, kind);

    test('reports endpoints, releases, workers, jobs, pods and volumes, and resumes after a disconnect', async () => {
      const { url } = fixture.server;
      const account = fixture.operator;
      const reader = await readEvents(url, fixture.server.key);
      const ready = await reader.waitFor('ready', ({ type }) => type === 'ready');
      assert.equal(ready['resumed'], false);
      const endpointId = await deployHandler(account, 'told', 'export default () => 1;\n', {
        workers: { min: 0, max: 1 },
      });
      const ran = await account.call<{ id: string }>('POST', `/v2/${endpointId}/runsync?wait=60000`, {
        input: {},
      });
      const ended = await reader.waitFor(
        'the job has ended',
        ({ type, jobs }) =>
          type === 'job.changed' &&
          (jobs as { id: string; status: string }[]).some(
            ({ id, status }) => id === ran.body.id && status === 'COMPLETED',
          ),
      );
      assert.equal(ended['endpointId'], endpointId);
      for (const type of ['endpoint.changed', 'release.created', 'worker.changed'])
        assert.ok(
          reader.events.some((event) => event.type === type && event['endpointId'] === endpointId),
          type,
        );
      await reader.waitFor(
        'ready worker',
        ({ type, state }) => type === 'worker.changed' && state === 'ready',
      );

      reader.close();
      const { id: podId } = await createRunningPod(account);
      const volumeId = await createVolume(account);
      const resumed = await readEvents(url, fixture.server.key, '', ended.id);
      await resumed.waitFor('resumed', (event) => event.type === 'ready' && event['resumed'] === true);
      await resumed.waitFor(
        'the pod runs',
        (event) => event['podId'] === podId && event['status'] === 'RUNNING',
      );
      await resumed.waitFor('the volume', (event) => event['volumeId'] === volumeId);
      await account.call('DELETE', `/v2/serverless/${endpointId}`);
      await resumed.waitFor('deleted', (event) => event.type === 'endpoint.deleted');
      resumed.close();
    });

    test('shows an account nothing of another, and a key no jobs that it may not read', async () => {
      const { url } = fixture.server;
      const [mine, theirs] = [await fixture.createAccount('mine'), await fixture.createAccount('theirs')];
      const { body: noJobs } = await mine.call<{ id: string; key: string }>('POST', '/v2/account/api-keys', {
        name: 'no jobs',
        access: 'RESTRICTED',
        scopes: { rest: 'READ', serverless: 'NONE' },
      });
      const readers = {
        full: await readEvents(url, mine.key),
        noJobs: await readEvents(url, noJobs.key),
        pods: await readEvents(url, mine.key, '?types=pod'),
      };
      const { id: foreign } = await createQueueEndpoint(url, theirs.key);
      const endpoint = await createQueueEndpoint(url, mine.key);
      const endpointId = endpoint.id;
      await endpoint.run();
      await readers.full.waitFor('the job', ({ type }) => type === 'job.changed');
      await readers.noJobs.waitFor('the endpoint', (event) => event['endpointId'] === endpointId);
      await mine.call('PATCH', `/v2/serverless/${endpointId}`, { name: 'last' });
      for (const reader of [readers.full, readers.noJobs])
        await reader.waitFor('the last change', ({ name }) => name === 'last');
      assert.ok(!readers.full.events.some((event) => event['endpointId'] === foreign));
      assert.ok(!readers.noJobs.events.some(({ type }) => type === 'job.changed'));
      assert.deepEqual(
        readers.pods.events.map(({ type }) => type),
        ['ready'],
      );

      await mine.call('DELETE', `/v2/account/api-keys/${noJobs.id}`);
      await waitFor('the stream of the revoked key has ended', () => readers.noJobs.hasEnded());
      assert.equal(readers.full.hasEnded(), false);
      for (const reader of Object.values(readers)) reader.close();
      const bad = await mine.call('GET', '/v2/events?types=weather');
      assert.equal(bad.status, 422);
      for (const [account, id] of [
        [mine, endpointId],
        [theirs, foreign],
      ] as const)
        await account.call('DELETE', `/v2/serverless/${id}`);
    });

    test('an account is told of its limits, when they are set and when much of one is used', async () => {
      const { url } = fixture.server;
      const [mine, theirs] = [
        await fixture.createAccount('limited'),
        await fixture.createAccount('unlimited'),
      ];
      const reader = await readEvents(url, mine.key, '?types=quota');
      const others = await readEvents(url, theirs.key, '?types=quota');
      for (const each of [reader, others]) await each.waitFor('ready', ({ type }) => type === 'ready');
      const set = (limits: object) =>
        fixture.operator.call('PATCH', `/v2/accounts/${mine.id}/limits`, limits);
      await set({ volumeBytes: 10_000_000_000, pods: 4 });
      await reader.waitFor('a limit', ({ limit, maximum }) => limit === 'pods' && maximum === 4);
      await set({ pods: null });
      await reader.waitFor('no limit', ({ limit, maximum }) => limit === 'pods' && maximum === null);
      await createVolume(mine);
      // Accounts are looked at every 30 s.
      const warning = await waitFor(
        'the warning',
        () => reader.events.find(({ type }) => type === 'quota.warning'),
        60_000,
      );
      assert.deepEqual([warning['limit'], warning['usedRatio']], ['volumeBytes', 1]);
      reader.close();
      assert.deepEqual(
        others.events.map(({ type }) => type),
        ['ready'],
      );
      others.close();
    });

    test('after a crash a reader is told to read everything again', async () => {
      const account = await fixture.createAccount('before the crash');
      const first = await readEvents(fixture.server.url, account.key);
      const { id } = await first.waitFor('ready', ({ type }) => type === 'ready');
      await fixture.server.kill();
      await waitFor('the stream has ended', () => first.hasEnded());
      await fixture.restart();
      const next = await readEvents(fixture.server.url, account.key, '', id);
      await next.waitFor('reset', ({ type }) => type === 'reset');
      const volumeId = await createVolume(account);
      await next.waitFor('what happens now', (event) => event['volumeId'] === volumeId);
      next.close();
    });
  });
}
