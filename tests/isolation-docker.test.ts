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

/** Processes that one container may have here. */
const PIDS = 100;
const NET_RAW = 13n;
const SYS_ADMIN = 21n;

/**
 * What runs in the hostile container. Each attempt is a line of the table; it prints `name: reached` where it
 * got what it must not get, and `name: refused` where it did not.
 */
const HOSTILE = String.raw`
const { connect } = require('node:net');
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const dns = require('node:dns/promises');
const target = JSON.parse(process.env.TARGETS);
const gateway = () => {
  const line = fs.readFileSync('/proc/net/route', 'utf8').split('\n').find((row) => row.split('\t')[1] === '00000000');
  return Buffer.from(line.split('\t')[2], 'hex').reverse().join('.');
};
const reach = (host, port) => new Promise((resolve, reject) => {
  const socket = connect({ host, port: Number(port), timeout: 1500 });
  socket.on('connect', () => { socket.destroy(); resolve(); });
  socket.on('timeout', () => { socket.destroy(); reject(new Error('timeout')); });
  socket.on('error', reject);
});
const connectPath = (path) => new Promise((resolve, reject) => {
  const socket = connect(path, () => { socket.destroy(); resolve(); });
  socket.on('error', reject);
});
const token = 'Bearer ' + process.env.RUNPOD_API_KEY;
const ask = async (method, path, body, headers = {}) => {
  const response = await fetch(process.env.WORKER_URL + path, {
    method,
    headers: { authorization: token, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(String(response.status));
  return response.text();
};
const raw = (line) => new Promise((resolve, reject) => {
  const { hostname, port } = new URL(process.env.WORKER_URL);
  const headers = ['Host: x', 'Authorization: ' + token, 'Connection: close'];
  const socket = connect(Number(port), hostname, () => socket.write([line, ...headers, '', ''].join('\r\n')));
  socket.on('error', reject);
  socket.once('data', (bytes) => (/^HTTP\/1.1 2/.test(String(bytes)) ? resolve() : reject(new Error(String(bytes)))));
  socket.once('close', () => reject(new Error('closed')));
});
const run = (program, ...args) => {
  const { status, error } = spawnSync(program, args, { timeout: 5000, stdio: 'ignore' });
  if (error !== undefined || status !== 0) throw error ?? new Error('exit ' + status);
};
const status = (name) =>
  new RegExp('^' + name + ':\\s+(\\S+)', 'm').exec(fs.readFileSync('/proc/self/status', 'utf8'))[1];
const refuseUnless = (possible, why) => { if (!possible) throw new Error(why); };
const capability = (bit) => refuseUnless((BigInt('0x' + status('CapBnd')) >> BigInt(bit)) & 1n, 'no');
const absent = (...paths) => { for (const path of paths) if (fs.existsSync(path)) return; throw new Error('absent'); };
const attempts = {
  'the victim at its address': () => reach(target.victim.address, target.victim.port),
  'the victim by its name': async () =>
    reach((await dns.lookup('berth-' + target.victim.id)).address, target.victim.port),
  'the published port of the victim, at the default bridge': () =>
    reach('host.docker.internal', target.victim.published),
  'the published port of the victim, at my gateway': () => reach(gateway(), target.victim.published),
  'the published port of the victim, on my loopback': () => reach('127.0.0.1', target.victim.published),
  'the gateway of the victim': () => reach(target.victim.gateway, target.database),
  'a database on the machine, at the default bridge': () => reach('host.docker.internal', target.database),
  'a database on the machine, at my gateway': () => reach(gateway(), target.database),
  'a database on the machine, at its own address': () => reach(target.machine, target.database),
  'a database on the loopback of the machine, through my gateway': () => reach(gateway(), target.loopback),
  'a database on the loopback of the machine, through the default bridge': () =>
    reach('host.docker.internal', target.loopback),
  'the whole API of Berth, at my gateway': () => reach(gateway(), target.berth),
  'the whole API of Berth, at the address of the machine': () => reach(target.machine, target.berth),
  'the management API at the worker listener': async () => {
    const { status } = await fetch(process.env.WORKER_URL + '/v2/pods');
    if (status !== 200) throw new Error(String(status));
  },
  'the pods of others with my token': async () => {
    const headers = { authorization: token };
    const { status } = await fetch(process.env.WORKER_URL + '/v2/pods/' + target.victim.id, { headers });
    if (status !== 200) throw new Error(String(status));
  },
  'a stop of the pod of another with my token': () =>
    ask('POST', '/v2/pods/' + target.victim.id + '/action', { action: 'stop' }),
  'a stop of the pod of another over GraphQL': async () => {
    const query = 'mutation { podStop(input: { podId: "' + target.victim.id + '" }) { id } }';
    const text = await ask('POST', '/graphql', { query });
    if (text.includes('"errors"')) throw new Error(text);
  },
  'the files of the pod of another with my token': () => ask('GET', '/v2/pods/' + target.victim.id + '/files?path=/'),
  'the log of the pod of another with my token': () => ask('GET', '/v2/pods/' + target.victim.id + '/logs'),
  'the jobs of another with my token': () => ask('GET', '/v2/' + target.victim.endpoint + '/job-take/mine?gpu=none'),
  'a job for another with my token': () => ask('POST', '/v2/' + target.victim.endpoint + '/run', { input: {} }),
  'a worker of another with a made up token': () => {
    const authorization = 'Bearer rpw_' + 'a'.repeat(43);
    const path = '/v2/' + target.victim.endpoint + '/job-take/mine?gpu=none';
    return ask('GET', path, undefined, { authorization });
  },
  'the accounts with my token': () => ask('GET', '/v2/accounts'),
  'a new key with my token': () => ask('POST', '/v2/account/api-keys', { name: 'mine', access: 'all' }),
  'the interface between servers': () =>
    ask('GET', '/internal/engines/docker/stop?args=%5B%22' + target.victim.id + '%22,1%5D'),
  'the metrics of all accounts': () => ask('GET', '/metrics'),
  'the buckets at the worker listener': () => ask('GET', '/s3/'),
  'the console with a made up session': () => {
    const cookie = 'berth_session=bst_' + 'a'.repeat(43);
    return ask('GET', '/v2/pods', undefined, { authorization: '', cookie });
  },
  'the management API under the address of the server': () =>
    raw('GET http://127.0.0.1:' + target.berth + '/v2/pods HTTP/1.1'),
  'the management API behind a second slash': () => raw('GET //v2/pods HTTP/1.1'),
  'the management API behind a pod': () => raw('GET /proxy/../v2/pods HTTP/1.1'),
  'another cgroup': () => {
    const folders = ['.', ...fs.readdirSync('/sys/fs/cgroup')];
    const joined = folders.filter((name) => {
      try {
        fs.writeFileSync('/sys/fs/cgroup/' + name + '/cgroup.procs', '1', { flag: 'r+' });
        return true;
      } catch {
        return false;
      }
    });
    if (joined.length === 0) throw new Error('none');
  },
  'the program of core dumps': () => fs.writeFileSync('/proc/sys/kernel/core_pattern', '|/bin/sh'),
  'the metadata service of the cloud': () => reach('169.254.169.254', 80),
  'the metadata service of the cloud over IPv6': () => reach('fd00:ec2::254', 80),
  'the abstract socket of the victim': () => connectPath('\0berth-victim'),
  'the shared memory of the victim': () => absent('/dev/shm/victim'),
  'the files of the victim in /tmp': () => absent('/tmp/victim'),
  'the keys that the kernel holds': () => refuseUnless(fs.readFileSync('/proc/keys', 'utf8') !== '', 'masked'),
  'the memory of the machine': () =>
    refuseUnless(fs.readSync(fs.openSync('/proc/kcore'), Buffer.alloc(8)) !== 0, 'masked'),
  'the firmware of the machine': () => refuseUnless(fs.readdirSync('/sys/firmware').length !== 0, 'masked'),
  'the program that runs when a cgroup is empty': () =>
    fs.writeFileSync('/sys/fs/cgroup/memory/release_agent', '/bin/sh'),
  'the files of the machine behind the first process': () => absent('/proc/1/root' + target.data + '/master.key'),
  'a Docker daemon on TCP': () => reach(gateway(), 2375),
  'the Docker socket': () => absent('/var/run/docker.sock', '/run/docker.sock', target.dockerSocket),
  'the data directory of Berth': () => absent(target.data + '/master.key', target.data + '/root.key'),
  'raw packets': () => capability(13),
  'the administration of the machine': () => capability(21),
  'new devices': () => capability(27),
  'the memory of other processes': () => capability(19),
  'more rights by a set-user-id program': () => { if (status('NoNewPrivs') === '1') throw new Error('no'); },
  'a system call filter that is off': () => { if (status('Seccomp') === '2') throw new Error('no'); },
  'a mount': () => run('mount', '-t', 'tmpfs', 'none', '/tmp'),
  'a device node': () => run('mknod', '/tmp/disk', 'b', '8', '0'),
  'a user namespace': () => run('unshare', '--user', '--map-root-user', 'true'),
  'a change of the kernel settings': () => fs.writeFileSync('/proc/sys/kernel/hostname', 'mine'),
  'a restart of the machine': () => fs.writeFileSync('/proc/sysrq-trigger', 'h'),
  'the disks of the machine': () => absent('/dev/sda', '/dev/vda', '/dev/nvme0n1', '/dev/mem'),
  'the processes of the machine': () => process.kill(target.pid, 0),
  'all processes of the machine': async () => {
    const children = [];
    const failed = [];
    for (let made = 0; made < target.pids * 2; made += 1) {
      const child = spawn('sleep', ['60'], { stdio: 'ignore' });
      child.on('error', (error) => failed.push(error));
      children.push(child);
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const child of children) if (child.pid !== undefined) child.kill('SIGKILL');
    if (failed.length > 0) throw failed[0];
  },
};
const allowed = {
  'the worker listener': async () => { await fetch(process.env.WORKER_URL + '/v2/pods'); },
  'a container of the same account': () => reach(target.friend.address, target.friend.port),
};
(async () => {
  for (const [kind, table] of Object.entries({ attempt: attempts, allowed })) {
    for (const [name, attempt] of Object.entries(table)) {
      const result = await Promise.resolve().then(attempt).then(() => 'reached', () => 'refused');
      console.log(kind + ': ' + name + ': ' + result);
    }
  }
  console.log('done');
  setInterval(() => {}, 1000);
})();
`;

/** What the hostile container looks for in this one. */
const SERVE = String.raw`
for (const file of ['/dev/shm/victim', '/tmp/victim']) require('node:fs').writeFileSync(file, 'secret');
const serve = () => require('node:net').createServer((socket) => socket.end());
serve().listen('\0berth-victim', () => serve().listen(7000, () => console.log('listening')));
`;

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
        await runPod(victim, SERVE, { ports: ['7000/tcp'] }),
        await runPod(mallory, SERVE),
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
