import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import type {
  InspectedContainer,
  Network,
} from '../packages/cloud/src/engines/docker/client/docker-objects.ts';
import { createTestImage } from '../packages/testing/src/docker-test-image.mjs';
import {
  createPod,
  podLog,
  waitForPodStatus,
  containerLogLines,
} from '../packages/testing/src/pod-client.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { withDocker } from '../packages/testing/src/with-docker.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { HOSTILE, VICTIM } from './isolation/hostile-container.ts';

/** Processes that one container may have here. */
const PIDS = 100;
const NET_RAW = 13n;
const SYS_ADMIN = 21n;

await withDocker((host) => {
  describe('a hostile container', () => {
    const docker = new DockerClient(host);
    const image = { name: '', remove: async (): Promise<void> => undefined };
    const sockets: Server[] = [];
    let place: TestDatabase;
    let server: ServerProcess;
    let [mallory, victim] = [{} as ApiClient, {} as ApiClient];
    let results = new Map<string, string>();
    let installation = '';

    before(async () => {
      Object.assign(
        image,
        await createTestImage(host, `localhost/berth-hostile:p${process.pid}`, {
          programs: ['mount', 'mknod', 'unshare'],
        }),
      );
      place = await createTestDatabase('sqlite');
      mkdirSync(place.data, { recursive: true });
      const config = join(place.data, 'berth.yaml');
      writeFileSync(
        config,
        `dataCenters:\n  - { id: DOCKER-1, engine: docker, pids: ${PIDS} }\n  - { id: DOCKER-2, ` +
          `engine: docker, runtime: runsc }\n  - { id: DOCKER-3, engine: docker, requireUserNamespaces: ` +
          `true }\n  - { id: DOCKER-4, engine: docker, capabilities: [NET_RAW] }\n`,
      );
      server = await startServerProcess(place, {
        BERTH_CONFIG: config,
        BERTH_DOCKER: host,
        BERTH_RATE_LIMITS: 'off',
      });
      const account = async (name: string): Promise<ApiClient> => {
        const made = await server.client().call<{ key: string }>('POST', '/v2/accounts', { name });
        assert.equal(made.status, 201, made.text);
        return createApiClient(server.url, made.body.key);
      };
      [mallory, victim] = [await account('mallory'), await account('victim')];
      results = await attack();
    });

    after(async () => {
      for (const client of [mallory, victim])
        for (const { id } of (await client.call<{ pods: { id: string }[] }>('GET', '/v2/pods')).body.pods)
          await client.call('DELETE', `/v2/pods/${id}`);
      await waitFor(
        'the networks of the accounts are removed',
        async () => (await networks()).length === 0,
        60_000,
      );
      await server.stop();
      for (const socket of sockets) socket.close();
      await image.remove();
      await place.drop();
    });

    /** Of this installation alone: other tests may use the same daemon. */
    const networks = async (): Promise<Network[]> =>
      docker.get<Network[]>('/networks', { filters: { label: [`berth.installation=${installation}`] } });

    const listen = async (address: string): Promise<number> => {
      const socket = createServer((connection) => connection.end());
      await once(socket.listen(0, address), 'listening');
      sockets.push(socket);
      return (socket.address() as AddressInfo).port;
    };

    const runPod = async (
      client: ApiClient,
      script: string,
      body: Record<string, unknown> = {},
    ): Promise<{ id: string; address: string; gateway: string; published: number }> => {
      const made = await createPod(client, {
        image: image.name,
        cmd: ['node', '-e', script],
        dataCenterIds: ['DOCKER-1'],
        ...body,
      });
      assert.equal(made.status, 201, made.text);
      const { id } = made.body;
      await waitForPodStatus(client, id, 'RUNNING');
      const { NetworkSettings: settings, Config: config } = await docker.get<InspectedContainer>(
        `/containers/berth-${id}/json`,
      );
      installation = config.Labels['berth.installation'] ?? '';
      const [network] = Object.values(settings.Networks ?? {});
      return {
        id,
        address: network?.IPAddress ?? '',
        gateway: network?.Gateway ?? '',
        published: Number(settings.Ports?.['7000/tcp']?.[0]?.HostPort ?? 0),
      };
    };

    async function attack(): Promise<Map<string, string>> {
      const [target, friend] = [
        await runPod(victim, VICTIM, { ports: ['7000/tcp'] }),
        await runPod(mallory, VICTIM),
      ];
      const { body: endpoint } = await victim.call<{ id: string }>('POST', '/v2/serverless', {
        name: 'queue',
        type: 'QUEUE',
        image: 'local/shell',
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 0 },
      });
      const sent = await victim.call('POST', `/v2/${endpoint.id}/run`, { input: {} });
      assert.equal(sent.status, 200, sent.text);
      const machine =
        Object.entries(networkInterfaces())
          .filter(([name]) => !/^(lo|bt|br-|docker|veth|berth)/.test(name))
          .flatMap(([, addresses]) => addresses ?? [])
          .find(({ family }) => family === 'IPv4')?.address ?? '10.255.255.1';
      const { id } = await runPod(
        mallory,
        `process.env.WORKER_URL = new URL(process.env.RUNPOD_API_URL).origin;${HOSTILE}`,
        {
          env: {
            TARGETS: JSON.stringify({
              victim: { ...target, port: 7000, endpoint: endpoint.id },
              friend: { ...friend, port: 7000 },
              database: await listen('0.0.0.0'),
              loopback: await listen('127.0.0.1'),
              machine,
              berth: Number(new URL(server.url).port),
              data: place.data,
              dockerSocket: host.replace('unix://', ''),
              pid: process.pid,
              pids: PIDS,
            }),
          },
        },
      );
      const log = await waitFor(
        'the attempts are over',
        async () => {
          const lines = await containerLogLines(mallory, id);
          return lines.includes('done') ? lines : undefined;
        },
        120_000,
      );
      return new Map(
        log
          .filter((line) => /: (reached|refused)$/.test(line))
          .map((line) => [line.slice(0, line.lastIndexOf(': ')), line.slice(line.lastIndexOf(': ') + 2)]),
      );
    }

    test('fails in every attempt', () => {
      const attempts = [...results].filter(([name]) => name.startsWith('attempt: '));
      assert.ok(attempts.length >= 60, `only ${attempts.length} attempts were made`);
      assert.deepEqual(
        attempts.filter(([, result]) => result !== 'refused'),
        [],
      );
    });

    test('still reaches the worker listener and the containers of its own account', () => {
      assert.deepEqual(
        [...results].filter(([name]) => name.startsWith('allowed: ')).map(([, result]) => result),
        ['reached', 'reached'],
      );
    });

    test('each account has a network of its own, with a label', async () => {
      const found = await networks();
      assert.equal(found.length, 2);
      assert.ok(found.every(({ Name: name }) => name.startsWith('berth-account-')));
      const subnets = found.map(({ IPAM: ipam }) => ipam?.Config?.[0]?.Subnet);
      assert.equal(new Set(subnets).size, 2);
    });

    test('a container outside the networks of Berth does reach the database: the targets are real', async () => {
      const port = (sockets[0]?.address() as AddressInfo).port;
      const script =
        'const ' +
        `s=require('node:net').connect(${port},'host.docker.internal',()=>{console.log('reached');process.exit(0)});s.on('error',(e)=>{console.log(e.code);process.exit(1)})`;
      const { Id: containerId } = await docker.post<{ Id: string }>('/containers/create', {
        body: {
          Image: image.name,
          Cmd: ['node', '-e', script],
          HostConfig: { ExtraHosts: ['host.docker.internal:host-gateway'] },
        },
      });
      const container = `/containers/${containerId}`;
      try {
        await docker.post(`${container}/start`);
        assert.equal((await docker.wait<{ StatusCode: number }>(`${container}/wait`)).StatusCode, 0);
      } finally {
        await docker.delete(container, { force: true });
      }
    });

    test('a runtime or user namespaces that the daemon does not have are refused with the reason', async () => {
      for (const [dataCenterId, reason] of [
        ['DOCKER-2', /no runtime .*runsc/],
        ['DOCKER-3', /userns-remap/],
      ] as const) {
        const made = await createPod(mallory, { image: image.name, dataCenterIds: [dataCenterId] });
        assert.equal(made.status, 201, made.text);
        await waitFor(`${dataCenterId} says why`, async () =>
          (await podLog(mallory, made.body.id)).some(({ line }) => reason.test(line)),
        );
      }
    });

    test('the operator grants capabilities by name', async () => {
      const { id } = await runPod(
        mallory,
        `console.log('bounding ' + ` +
          `/CapBnd:\\s+(\\S+)/.exec(require('node:fs').readFileSync('/proc/self/status','utf8'))[1]); ` +
          'setInterval(() => {}, 1000)',
        { dataCenterIds: ['DOCKER-4'] },
      );
      const mask = await waitFor('it writes its capabilities', async () => {
        const line = (await containerLogLines(mallory, id)).find((text) => text.startsWith('bounding '));
        return line === undefined ? undefined : BigInt(`0x${line.slice('bounding '.length)}`);
      });
      assert.deepEqual([(mask >> NET_RAW) & 1n, (mask >> SYS_ADMIN) & 1n], [1n, 0n]);
    });
  });
});
