import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { BERTH_COMMAND } from '../packages/testing/src/berth-command.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { POD_HTTP_SERVER_SOURCE } from '../packages/testing/src/pod-http-server.ts';
import {
  containerLogLines,
  createRunningPod,
  getPod,
  processesOfInstance,
} from '../packages/testing/src/pod-client.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import type { ServerSlot } from '../packages/testing/src/several-servers-fixture.ts';
import { openTerminal } from '../packages/testing/src/terminal-client.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

interface Health {
  workers: { idle: number; running: number; ready: number };
}

describe('three servers, each on a machine of its own', () => {
  let servers: SeveralServers;
  before(async () => {
    servers = await SeveralServers.start(3);
  });
  after(() => servers?.stop());

  const createEndpoint = async (client: ApiClient, body: Record<string, unknown>): Promise<string> => {
    const made = await client.call<{ id: string }>('POST', '/v2/serverless', {
      name: 'shared',
      type: 'QUEUE',
      image: 'local/echo',
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'REQUEST_COUNT', requestCount: 4 },
      workers: { min: 1, max: 1 },
      ...body,
    });
    assert.equal(made.status, 201, made.text);
    return made.body.id;
  };
  const runs = async (client: ApiClient, endpointId: string): Promise<void> => {
    const ran = await client.call<{ status: string; output: unknown }>(
      'POST',
      `/v2/${endpointId}/runsync?wait=60000`,
      { input: { from: client.url } },
    );
    assert.deepEqual([ran.body.status, ran.body.output], ['COMPLETED', { from: client.url }], ran.text);
  };
  const inTerminal = async ({ server }: ServerSlot, path: string, command: string): Promise<string> => {
    const terminal = await openTerminal(
      `${server.url.replace(/^http/, 'ws')}${path}/terminal?cmd=sh&cmd=-c&cmd=${encodeURIComponent(command)}`,
      { authorization: `Bearer ${server.key}` },
    );
    assert.equal((await terminal.ended).exit?.exitCode, 0);
    return terminal.stdout().toString();
  };

  test('an endpoint that was made at another server has its worker at once, and all servers show it', async () => {
    const [one, two] = await servers.followers();
    assert.ok(one !== undefined && two !== undefined);
    const id = await createEndpoint(one.server.client(), {});
    for (const slot of [one, two]) await runs(slot.server.client(), id);
    const workers = await waitFor('all servers show the worker', async () => {
      const shown = await Promise.all(servers.slots.map(({ server }) => listWorkers(server.client(), id)));
      return shown.every(([worker]) => worker?.status === 'IDLE') && shown;
    });
    const workerId = workers[0]?.[0]?.id ?? '';
    for (const slot of servers.slots) {
      const client = slot.server.client();
      await waitFor('the worker is counted', async () => {
        const { body } = await client.call<Health>('GET', `/v2/${id}/health`);
        return body.workers.idle === 1 && body.workers.ready === 1;
      });
      const logs = await client.call('GET', `/v2/serverless/${id}/workers/${workerId}/logs?follow=false`);
      assert.match(logs.text, /from/);
      assert.equal(
        await inTerminal(slot, `/v2/serverless/${id}/workers/${workerId}`, 'echo $RUNPOD_POD_ID'),
        `${workerId}\n`,
      );
    }
    assert.equal((await two.server.client().call('DELETE', `/v2/serverless/${id}`)).status, 204);
    await waitFor('its worker has ended', () => processesOfInstance(workerId).length === 0);
  });

  test('why an endpoint has no worker is said by every server', async () => {
    const [one] = await servers.followers();
    assert.ok(one !== undefined);
    const id = await createEndpoint(one.server.client(), { image: 'registry.example/needs-docker:1' });
    for (const { server } of servers.slots)
      await waitFor('the reason', async () => {
        const { text } = await server.client().call('GET', `/v2/serverless/${id}/workers`);
        return /no worker can be placed/.test(text);
      });
    await one.server.client().call('DELETE', `/v2/serverless/${id}`);
  });

  test('a load balancing endpoint answers at every server', async () => {
    const [one] = await servers.followers();
    assert.ok(one !== undefined);
    const id = await createEndpoint(one.server.client(), {
      type: 'LOAD_BALANCER',
      image: 'local/http-server',
      workers: { min: 0, max: 1 },
    });
    for (const { server } of [one, ...servers.slots]) {
      const answer = await server.client().call<{ n: number }>('POST', `/v2/${id}/echo`, { n: 1 });
      assert.deepEqual([answer.status, answer.body], [200, { n: 1 }], answer.text);
    }
    await one.server.client().call('DELETE', `/v2/serverless/${id}`);
  });

  test('logs, files, terminal, use and ports of a pod are at every server', async () => {
    const [one] = await servers.followers();
    assert.ok(one !== undefined);
    const { id } = await createRunningPod(one.server.client(), {
      cmd: ['sh', '-c', 'echo hello; exec node -e "$SOURCE"'],
      env: { LISTEN_AS: 'BERTH_PORT_8000', SOURCE: POD_HTTP_SERVER_SOURCE },
      ports: ['8000/http'],
    });
    for (const slot of servers.slots) {
      const { server } = slot;
      const client = server.client();
      await waitFor('the line is in the log', async () =>
        (await containerLogLines(client, id)).includes('hello'),
      );
      assert.equal(await inTerminal(slot, `/v2/pods/${id}`, 'echo made > made.txt; pwd | wc -l'), '1\n');
      const info = await client.call<{ size: number }>('GET', `/v2/pods/${id}/files/info?path=made.txt`);
      assert.deepEqual([info.status, info.body.size], [200, 5], info.text);
      const file = await fetch(`${server.url}/v2/pods/${id}/files?path=made.txt`, {
        headers: { authorization: `Bearer ${server.key}` },
      });
      assert.match(await file.text(), /made/);
      await waitFor('its port answers', async () => {
        const answer = await fetch(`${server.url}/proxy/${id}-8000/`);
        await answer.body?.cancel();
        return answer.status === 200;
      });
      assert.ok((await getPod(client, id)).runtime !== null);
    }
    // Only servers of the installation reach the engines of others.
    const path = `/internal/engines/process/list?args=${encodeURIComponent('[]')}`;
    const refused = await one.server.client().call('POST', path, undefined, { 'x-berth-peer': '1.00' });
    assert.equal(refused.status, 404);
    assert.equal((await one.server.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
  });

  test('every server lists all of them and says who leads', async () => {
    const all = servers.slots.map(({ server }) => server.url).sort();
    for (const { server } of servers.slots)
      await waitFor('all are listed, and one leads', async () => {
        const { body } = await server
          .client()
          .call<{ servers: { address: string; leading: boolean }[] }>('GET', '/v2/system');
        const addresses = body.servers.map(({ address }) => address).sort();
        return addresses.join() === all.join() && body.servers.filter(({ leading }) => leading).length === 1;
      });
  });

  test('they go on, and start, on a schema to which a newer version has only added', async () => {
    const [follower] = await servers.followers();
    assert.ok(follower !== undefined);
    await servers.execute('update schema_version set version = version + 1');
    await servers.execute('alter table endpoints add column added_by_a_newer_version text');
    try {
      await follower.server.kill();
      await servers.restart(follower);
      for (const { server } of servers.slots)
        assert.equal((await server.client().call('GET', '/readyz')).status, 200);
      const id = await createEndpoint(follower.server.client(), {});
      for (const { server } of servers.slots) await runs(server.client(), id);
    } finally {
      await servers.execute('alter table endpoints drop column added_by_a_newer_version');
      await servers.execute('update schema_version set version = version - 1');
    }
  });

  test('a database that a newer version has changed makes them not ready, with the reason', async () => {
    const check = (): Promise<{ stdout: string }> =>
      promisify(execFile)(BERTH_COMMAND, [
        'upgrade',
        '--check',
        '--json',
        '--database',
        servers.database.url,
      ]);
    const found = JSON.parse((await check()).stdout) as { steps: string[]; runningVersions: string[] };
    assert.deepEqual([found.steps, found.runningVersions.length], [[], 1]);
    await servers.execute('update schema_version set version = version + 1, minimum_version = version + 1');
    try {
      for (const { server } of servers.slots) {
        const answer = await server.client().call('GET', '/readyz');
        assert.equal(answer.status, 503);
        assert.match(answer.text, /a newer Berth has upgraded this database/);
      }
      await assert.rejects(check(), /newer than this version/);
    } finally {
      await servers.execute('update schema_version set version = version - 1, minimum_version = version - 1');
    }
    for (const { server } of servers.slots)
      await waitFor('it is ready', async () => (await server.client().call('GET', '/readyz')).status === 200);
  });

  test('a leader that is killed, frozen or cut off is replaced, and changes nothing when back', async () => {
    const [maker] = await servers.followers();
    assert.ok(maker !== undefined);
    const id = await createEndpoint(maker.server.client(), { workers: { min: 2, max: 2 } });
    const ready = (slots: readonly ServerSlot[]): Promise<string[]> =>
      waitFor(
        'two workers are ready',
        async () => {
          const shown = await Promise.all(slots.map(({ server }) => listWorkers(server.client(), id)));
          const ids = shown.map((list) =>
            list
              .filter(({ status }) => status === 'IDLE')
              .map((worker) => worker.id)
              .sort(),
          );
          return ids.every((list) => list.length === 2 && list.join() === ids[0]?.join()) && ids[0];
        },
        40_000,
      );
    const before = await ready(servers.slots);

    const killed = await servers.leader();
    await killed.server.kill();
    await servers.nextLeader(killed);
    await servers.restart(killed);
    assert.deepEqual(await ready(servers.slots), before, await servers.ends());

    const frozen = await servers.leader();
    frozen.server.process.kill('SIGSTOP');
    const afterFreeze = await servers.nextLeader(frozen);
    await runs(afterFreeze.server.client(), id);
    frozen.server.process.kill('SIGCONT');
    assert.deepEqual(await ready(servers.slots), before, await servers.ends());

    const cutOff = await servers.leader();
    cutOff.cable.freeze();
    const afterCut = await servers.nextLeader(cutOff);
    const refused = await cutOff.server.client().call('POST', `/v2/${id}/run`, { input: 1 });
    assert.equal(refused.status, 503, refused.text);
    await runs(afterCut.server.client(), id);
    cutOff.cable.thaw();
    const left = await ready(servers.slots);
    assert.equal(
      left.reduce((sum, workerId) => sum + processesOfInstance(workerId).length, 0),
      2,
    );
    const [follower] = await servers.followers();
    await follower?.server.client().call('DELETE', `/v2/serverless/${id}`);
  });

  test('every worker was billed once, though its endpoint was deleted at a server that does not lead', async () => {
    const ofGone = 'where endpoint_id not in (select id from endpoints)';
    await waitFor(
      'the leader has ended the workers of deleted endpoints',
      async () => (await servers.number(`select count(*) from workers ${ofGone}`)) === 0,
    );
    const intervals = "from usage_stretches where kind = 'serverless'";
    assert.equal(
      await servers.number(`select count(*) ${intervals}`),
      await servers.number(`select count(distinct unit_id) ${intervals}`),
    );
    assert.equal(
      await servers.number(`select count(*) ${intervals} and ended_at > 9000000000`),
      await servers.number('select count(*) from workers where ended_at is null'),
    );
  });
});
