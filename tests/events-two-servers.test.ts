import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { readEvents } from '../packages/testing/src/event-reader.ts';
import type { EventReader, ReceivedAccountEvent } from '../packages/testing/src/event-reader.ts';
import { createRunningPod } from '../packages/testing/src/pod-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { createVolume } from '../packages/testing/src/s3-test-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';

/** Readers of each server are told of what happens on either. */
describe('GET /v2/events with two servers', () => {
  let database: TestDatabase;
  let folder: string;
  const servers: ServerProcess[] = [];
  const readers: EventReader[] = [];
  before(async () => {
    database = await createTestDatabase('postgres');
    folder = mkdtempSync(join(tmpdir(), 'berth-test-'));
    const env = { BERTH_RATE_LIMITS: 'off', BERTH_PROCESS_ISOLATION: 'none' };
    servers.push(await startServerProcess(database, env));
    servers.push(await startServerProcess({ data: folder, url: database.url }, env));
    const [first] = servers as [ServerProcess, ServerProcess];
    const { body } = await first
      .client()
      .call<{ id: string; key: string }>('POST', '/v2/accounts', { name: 'watched' });
    account = body;
    for (const { url } of servers) readers.push(await readEvents(url, account.key));
    await told('ready', ({ type }) => type === 'ready');
  });
  after(async () => {
    for (const reader of readers) reader.close();
    await Promise.all(servers.map((server) => server.stop()));
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  let account: { id: string; key: string };
  const told = (what: string, fits: (event: ReceivedAccountEvent) => boolean) =>
    Promise.all(readers.map((reader, index) => reader.waitFor(`${what}, by server ${index}`, fits)));

  for (const at of [0, 1])
    test(`what happens on server ${at} is told by both`, async () => {
      const server = servers[at] as ServerProcess;
      const client = server.client(account.key);
      const { id: endpointId, run } = await createQueueEndpoint(server.url, account.key);
      for (const type of ['endpoint.changed', 'release.created'])
        await told(type, (event) => event.type === type && event['endpointId'] === endpointId);
      await run();
      await told('a job', (event) => event.type === 'job.changed' && event['endpointId'] === endpointId);
      const volumeId = await createVolume(client);
      await told('a volume', (event) => event.type === 'volume.changed' && event['volumeId'] === volumeId);
      const { id: podId } = await createRunningPod(client);
      await told('a pod', (event) => event['podId'] === podId && event['status'] === 'RUNNING');
      const maximum = 10 + at;
      const { status } = await server
        .client()
        .call('PATCH', `/v2/accounts/${account.id}/limits`, { pods: maximum });
      assert.equal(status, 200);
      await told('a limit', (event) => event.type === 'quota.changed' && event['maximum'] === maximum);
      await client.call('DELETE', `/v2/pods/${podId}`);
      await told('no pod', (event) => event['podId'] === podId && event['status'] === 'TERMINATED');
      await client.call('DELETE', `/v2/network-volumes/${volumeId}`);
      await told('no volume', (event) => event.type === 'volume.deleted' && event['volumeId'] === volumeId);
      await client.call('DELETE', `/v2/serverless/${endpointId}`);
      await told(
        'no endpoint',
        (event) => event.type === 'endpoint.deleted' && event['endpointId'] === endpointId,
      );
    });
});
