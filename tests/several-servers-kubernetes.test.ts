import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import {
  kubernetesEngineFixture,
  type KubernetesEngineFixture,
} from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { withKubernetes } from '../packages/testing/src/kubernetes/with-kubernetes.ts';
import {
  containerLogLines,
  createPod,
  createRunningPod,
  podAction,
  podLog,
  waitForPodStatus,
} from '../packages/testing/src/pod-client.ts';
import { POD_HTTP_SERVER_SOURCE } from '../packages/testing/src/pod-http-server.ts';
import { SeveralServers, type ServerSlot } from '../packages/testing/src/several-servers-fixture.ts';
import { openTerminal } from '../packages/testing/src/terminal-client.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { nodeCommand } from '../packages/testing/src/worker-sources.ts';

const ECHO_SOURCE = `
import { createServer } from 'node:http';
createServer((request, response) => {
  if (request.url === '/ping') return void response.end('ok');
  response.setHeader('content-type', 'application/json');
  request.pipe(response);
}).listen(Number(process.env.PORT ?? 80));
process.on('SIGTERM', () => process.exit(0));
`;

await withKubernetes((cluster) => {
  describe('two servers with a Kubernetes cluster, each on a machine of its own', () => {
    let engine: KubernetesEngineFixture;
    let servers: SeveralServers;
    const endpoints: string[] = [];
    const pods: string[] = [];
    let running = '';
    let stopped = '';
    before(async () => {
      // A forwarded port is one of the machine where it was asked for.
      engine = await kubernetesEngineFixture(cluster, { portForwarding: true });
      servers = await SeveralServers.start(2, { env: engine.env, sharedCable: true });
      for (const { server } of servers.slots) {
        const client = server.client();
        await waitFor('the data center is there', async () =>
          (await client.call('GET', '/v2/catalog/datacenters')).text.includes(engine.dataCenterId),
        );
        // Its engine has looked around before any of what follows is there.
        assert.equal(
          (await client.call('GET', '/v2/catalog/gpus?include=AVAILABILITY&product=POD')).status,
          200,
        );
      }
    });
    after(async () => {
      const client = (await servers.leader()).server.client();
      for (const id of endpoints) await client.call('DELETE', `/v2/serverless/${id}`);
      for (const id of pods) await client.call('DELETE', `/v2/pods/${id}`);
      await servers.stop();
      await engine.close();
    });

    const follower = async (): Promise<ServerSlot> => {
      const [slot] = await servers.followers();
      assert.ok(slot !== undefined);
      return slot;
    };
    const makePod = async (client: ApiClient, cmd: string[], ports: string[] = []): Promise<string> => {
      const { id } = await createRunningPod(client, { image: engine.image, cmd, ports });
      pods.push(id);
      return id;
    };
    const inTerminal = async ({ server }: ServerSlot, id: string, command: string): Promise<string> => {
      const terminal = await openTerminal(
        `${server.url.replace(/^http/, 'ws')}/v2/pods/${id}/terminal?cmd=sh&cmd=-c&cmd=${encodeURIComponent(command)}`,
        { authorization: `Bearer ${server.key}` },
      );
      assert.equal((await terminal.ended).exit?.exitCode, 0);
      return terminal.stdout().toString();
    };
    const waitForLine = ({ server }: ServerSlot, id: string, line: string): Promise<unknown> =>
      waitFor(`${line} is in the log of ${server.url}`, async () =>
        (await containerLogLines(server.client(), id)).includes(line),
      );
    const systemLines = async ({ server }: ServerSlot, id: string): Promise<string[]> =>
      (await podLog(server.client(), id)).filter(({ source }) => source === 'system').map(({ line }) => line);
    const reachesAll = async (slot: ServerSlot, id: string, name: string): Promise<void> => {
      const { server } = slot;
      assert.equal(await inTerminal(slot, id, `echo made > ${name}; echo from inside`), 'from inside\n');
      const info = await server
        .client()
        .call<{ size: number }>('GET', `/v2/pods/${id}/files/info?path=${name}`);
      assert.deepEqual([info.status, info.body.size], [200, 5], info.text);
      const file = await fetch(`${server.url}/v2/pods/${id}/files?path=${name}`, {
        headers: { authorization: `Bearer ${server.key}` },
      });
      assert.match(await file.text(), /made/);
      await waitFor('its port answers', async () => {
        const answer = await fetch(`${server.url}/proxy/${id}-8000/`);
        await answer.body?.cancel();
        return answer.status === 200;
      });
    };

    test('logs, files, terminal and ports of a pod are at a server that never led', async () => {
      const slot = await follower();
      running = await makePod(
        slot.server.client(),
        ['sh', '-c', `echo hello; exec node -e "$0"`, POD_HTTP_SERVER_SOURCE],
        ['8000/http'],
      );
      for (const one of [slot, await servers.leader()]) {
        await waitForLine(one, running, 'hello');
        assert.ok((await systemLines(one, running)).some((line) => /^Starting /.test(line)));
        await reachesAll(one, running, `${new URL(one.server.url).port}.txt`);
      }
    });

    test('a log is followed at a server that does not lead, to the end of the pod', async () => {
      const slot = await follower();
      stopped = await makePod(slot.server.client(), ['sh', '-c', 'echo first; exec sleep 1000']);
      const followed = slot.server.client().call('GET', `/v2/pods/${stopped}/logs?follow=true`);
      await waitForLine(slot, stopped, 'first');
      assert.equal((await podAction(slot.server.client(), stopped, 'stop')).status, 200);
      const { text } = await followed;
      assert.match(text, /first/);
      assert.match(text, /Asked to end/);
    });

    test('the log of a pod that has ended or never started is there too', async () => {
      const slot = await follower();
      await waitForPodStatus(slot.server.client(), stopped, 'EXITED');
      assert.deepEqual(await containerLogLines(slot.server.client(), stopped), ['first']);
      assert.ok((await systemLines(slot, stopped)).some((line) => /^Asked to end/.test(line)));
      const failed = await createPod(slot.server.client(), { image: 'localhost:1/no/such-image:1' });
      assert.ok(failed.body.id, failed.text);
      pods.push(failed.body.id);
      await waitFor('why it does not start', async () =>
        (await systemLines(slot, failed.body.id)).some((line) => /could not be pulled/.test(line)),
      );
    });

    test('a load balancing endpoint answers at every server', async () => {
      const slot = await follower();
      const made = await slot.server.client().call<{ id: string }>('POST', '/v2/serverless', {
        name: 'balanced',
        type: 'LOAD_BALANCER',
        image: engine.image,
        args: JSON.stringify(nodeCommand(ECHO_SOURCE)),
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        scaling: { type: 'REQUEST_COUNT', requestCount: 4 },
        workers: { min: 0, max: 1 },
      });
      assert.equal(made.status, 201, made.text);
      endpoints.push(made.body.id);
      for (const { server } of [slot, await servers.leader()]) {
        const answer = await server
          .client()
          .call<{ n: number }>('POST', `/v2/${made.body.id}/echo`, { n: 1 });
        assert.deepEqual([answer.status, answer.body], [200, { n: 1 }], answer.text);
      }
    });

    test('after another server has taken over, both have all of it as before', async () => {
      const former = await servers.leader();
      await former.server.kill();
      const leader = await servers.nextLeader(former);
      await servers.restart(former);
      for (const slot of [former, leader]) {
        await waitForLine(slot, running, 'hello');
        await reachesAll(slot, running, `again-${new URL(slot.server.url).port}.txt`);
        // The former leader has written it.
        await waitForLine(slot, stopped, 'first');
      }
      const client = former.server.client();
      assert.equal((await podAction(client, running, 'stop')).status, 200);
      await waitForPodStatus(client, running, 'EXITED');
      for (const slot of [former, leader])
        assert.ok((await systemLines(slot, running)).some((line) => /^Asked to end/.test(line)));
    });
  });
});
