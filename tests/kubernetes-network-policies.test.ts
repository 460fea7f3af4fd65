import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { ObjectList, PodObject } from '../packages/cloud/src/engines/kubernetes/kubernetes-objects.ts';
import { readDetails } from '../packages/cloud/src/engines/kubernetes/pod-labels.ts';
import { type ApiClient, createApiClient } from '../packages/testing/src/api-client.ts';
import {
  type KubernetesForTests,
  startKubernetes,
} from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import {
  kubernetesEngineFixture,
  type KubernetesEngineFixture,
} from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { createPod, waitForPodStatus } from '../packages/testing/src/pod-client.ts';
import { serverlessFixture } from '../packages/testing/src/serverless-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { queueWorkerSource } from '../packages/testing/src/worker-sources.ts';

const PORT = 8080;
const POLICIES = '/apis/networking.k8s.io/v1/namespaces';
/** Says through HTTP what happens to a TCP connection that it opens. */
const PROBE = `
const connected = (host, port) => new Promise((resolve) => {
  const socket = require('node:net').connect({ host, port, timeout: 2000 });
  socket.on('connect', () => resolve('connected')).on('timeout', () => resolve('ETIMEDOUT'));
  socket.on('error', ({ code }) => resolve(code)).on('close', () => socket.destroy());
});
require('node:http').createServer(async (request, response) => {
  const { searchParams } = new URL(request.url, 'http://pod');
  response.end(await connected(searchParams.get('host'), searchParams.get('port')));
}).listen(${PORT});`;
const CLOSED = ['ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH'];

interface Probe {
  id: string;
  ip: string;
  client: ApiClient;
}
interface NodeWithAddresses {
  status: { addresses: { type: string; address: string }[] };
}

const cluster = await startKubernetes({ networkPolicies: true });
if ('reason' in cluster) test('network policies', { skip: cluster.reason }, () => undefined);
else stories(cluster);

function stories(kubernetes: KubernetesForTests): void {
  describe('network policies that the cluster enforces', () => {
    const { host, publicAddress } = kubernetes;
    let engine: KubernetesEngineFixture;
    const fixture = serverlessFixture(async () => (engine = await kubernetesEngineFixture(kubernetes)));
    /** Programs beside Berth on its machine, and on the internet. */
    let beside: Server;
    let outside: Server;
    before(async () => {
      [beside, outside] = [await listen(host), await listen(publicAddress)];
    });
    after(async () => {
      beside.close();
      outside.close();
      await kubernetes.stop();
    });
    /** Two of one account, on both nodes, and one of another account on the first. */
    let near: Probe;
    let far: Probe;
    let stranger: Probe;

    const cordon = (node: string, unschedulable: boolean): Promise<unknown> =>
      engine.cluster.merge(`/api/v1/nodes/${node}`, { spec: { unschedulable } });

    const createAccount = async (name: string): Promise<ApiClient> => {
      const { body, text } = await fixture.client.call<{ key: string }>('POST', '/v2/accounts', { name });
      assert.ok(body.key, text);
      return createApiClient(fixture.server.url, body.key);
    };

    const startProbe = async (client: ApiClient): Promise<Probe> => {
      const { body, text } = await createPod(client, {
        image: fixture.engine.image,
        cmd: ['node', '-e', PROBE],
        ports: [`${PORT}/http`],
      });
      assert.ok(body.id, text);
      await waitForPodStatus(client, body.id, 'RUNNING');
      const { items } = await engine.cluster.get<ObjectList<PodObject>>(
        `/api/v1/namespaces/${engine.namespace}/pods`,
      );
      const ip = items.find(({ metadata }) => readDetails(metadata)?.id === body.id)?.status?.podIP;
      assert.ok(ip);
      return { id: body.id, ip, client };
    };

    /** What a connection from inside of its container meets. It is asked through Berth's gateway. */
    const from = ({ id, client }: Probe, target: string, port: number): Promise<string> =>
      waitFor(`pod ${id} answers`, async () => {
        const path = `/proxy/${id}-${PORT}/?host=${target}&port=${port}`;
        const { status, text } = await client.call('GET', path);
        return status === 200 && text;
      });
    const isOpen = async (probe: Probe, target: string, port: number): Promise<void> =>
      assert.equal(await from(probe, target, port), 'connected', `to ${target}:${port}`);
    const isClosed = async (probe: Probe, target: string, port: number): Promise<void> => {
      const met = await from(probe, target, port);
      assert.ok(CLOSED.includes(met), `to ${target}:${port}: ${met}`);
    };
    const policies = async (): Promise<string[]> =>
      (
        await engine.cluster.get<ObjectList<PodObject>>(`${POLICIES}/${engine.namespace}/networkpolicies`)
      ).items.map(({ metadata }) => metadata.name);
    /** What pods have no business with: the API server, etcd, the nodes, and what runs beside Berth. */
    const internals = async (): Promise<[string, number][]> => {
      const { items } = await engine.cluster.get<ObjectList<NodeWithAddresses>>('/api/v1/nodes');
      const nodes = items.flatMap(({ status }) =>
        status.addresses.filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
      );
      assert.equal(nodes.length, 2);
      return [
        [host, 6443],
        ['kubernetes.default.svc.cluster.local', 443],
        [host, 2379],
        [host, portOf(beside)],
        ...nodes.map((node): [string, number] => [node, 10250]),
      ];
    };

    test('are there for each account', async () => {
      const [one, other] = [await createAccount('one'), await createAccount('other')];
      await cordon('node-1', true);
      near = await startProbe(one);
      stranger = await startProbe(other);
      await cordon('node-1', false);
      await cordon('node-0', true);
      far = await startProbe(one);
      await cordon('node-0', false);
      assert.equal((await policies()).length, 2);
      // The rules for a new pod count a moment after its start.
      for (const probe of [near, far])
        await waitFor('its rules count', async () =>
          CLOSED.includes(await from(probe, host, portOf(beside))),
        );
    });

    test('let the pods of an account reach each other, on one node and on two', async () => {
      await isOpen(near, near.ip, PORT);
      await isOpen(near, far.ip, PORT);
      await isOpen(far, near.ip, PORT);
    });

    test('close accounts off from each other', async () => {
      for (const probe of [near, far]) {
        await isClosed(probe, stranger.ip, PORT);
        await isClosed(stranger, probe.ip, PORT);
      }
    });

    test('close off the API server, etcd, nodes, and what else listens beside Berth', async () => {
      for (const probe of [near, far])
        for (const [target, port] of await internals()) await isClosed(probe, target, port);
    });

    test('leave Berth, names and the internet open', async () => {
      const { port } = new URL(fixture.server.url);
      for (const probe of [near, far]) {
        await isOpen(probe, host, Number(port));
        await isOpen(probe, publicAddress, portOf(outside));
        assert.equal(await from(probe, 'no-such.default.svc.cluster.local', 443), 'ENOTFOUND');
      }
      const endpoint = await fixture.deploy('open', queueWorkerSource('async (input) => input'));
      const job = await fixture.runSync(endpoint, { hello: 'world' });
      assert.deepEqual([job.status, job.output], ['COMPLETED', { hello: 'world' }], job.error);
    });

    test('let nobody in but Berth', async () => {
      for (const { ip } of [near, far]) {
        assert.equal(await connectionFrom(host, ip), 'connected');
        const met = await connectionFrom(publicAddress, ip);
        assert.ok(CLOSED.includes(met), met);
      }
    });

    test('close off again what somebody deletes', async () => {
      for (const name of await policies())
        await engine.cluster.delete(`${POLICIES}/${engine.namespace}/networkpolicies/${name}`);
      await waitFor('they are written again', async () => (await policies()).length >= 2);
      await waitFor('their rules count', async () => CLOSED.includes(await from(near, stranger.ip, PORT)));
    });

    test('close nothing beside a policy that opens everything', async () => {
      await engine.cluster.create(`${POLICIES}/${engine.namespace}/networkpolicies`, {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: { name: 'everything' },
        spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{}], egress: [{}] },
      });
      for (const probe of [near, far]) {
        await waitFor('its rules count', async () => (await from(probe, stranger.ip, PORT)) === 'connected');
        for (const [target, port] of await internals()) await isOpen(probe, target, port);
        assert.equal(await connectionFrom(publicAddress, probe.ip), 'connected');
      }
    });
  });
}

async function listen(host: string): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end()).listen(0, host);
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** What a connection to the port of the probes meets, from an address of this machine. */
function connectionFrom(localAddress: string, host: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: PORT, localAddress, timeout: 2000 });
    socket.on('connect', () => resolve('connected')).on('timeout', () => resolve('ETIMEDOUT'));
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? ''));
    socket.on('connect', () => socket.destroy()).on('timeout', () => socket.destroy());
  });
}
