import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DockerClient } from '../packages/cloud/src/engines/docker/client/docker-client.ts';
import type {
  InspectedContainer,
  ListedContainer,
} from '../packages/cloud/src/engines/docker/client/docker-objects.ts';
import { TestRegistry } from '../packages/cloud/src/engines/docker/docker-test-registry.ts';
import { imageArchive, PROGRAMS } from '../packages/testing/src/docker-test-image.mjs';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { withDocker } from '../packages/testing/src/with-docker.ts';
import { dockerEngineFixture } from '../packages/testing/src/engine-fixture.ts';
import type { EngineFixture } from '../packages/testing/src/engine-fixture.ts';
import {
  podAction,
  createPod,
  parseLogEvents,
  waitForPodStatus,
  containerLogLines,
  podLog,
  getPod,
} from '../packages/testing/src/pod-client.ts';
import type { PodView } from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { repeats } from '../packages/testing/src/test-tier.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const PODS = repeats({ usually: 6, long: 20 });

await withDocker((host) => {
  describe('pods on Docker', () => {
    const docker = new DockerClient(host);
    const registry = new TestRegistry(Buffer.concat([...imageArchive([...PROGRAMS, 'node'])]));
    let place: TestDatabase;
    let server: ServerProcess;
    let engine: EngineFixture;

    const up = async (): Promise<void> => {
      server = await startServerProcess(place, { ...engine.env, BERTH_RATE_LIMITS: 'off' });
      await waitFor('DOCKER-1 is there', async () =>
        (await server.client().call('GET', '/v2/catalog/datacenters')).text.includes('DOCKER-1'),
      );
    };
    before(async () => {
      await registry.open();
      place = await createTestDatabase('sqlite');
      engine = await dockerEngineFixture(host);
      await up();
    });
    after(async () => {
      for (const { id } of (await server.client().call<{ pods: PodView[] }>('GET', '/v2/pods')).body.pods)
        await server.client().call('DELETE', `/v2/pods/${id}`);
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error'),
        [],
      );
      await server.stop();
      await engine.close();
      await registry.close();
      await place.drop();
    });

    const create = async (script: string, body: Record<string, unknown> = {}): Promise<string> => {
      const made = await createPod(server.client(), {
        image: engine.image,
        cmd: ['sh', '-c', script],
        ...body,
      });
      assert.equal(made.status, 201, made.text);
      return made.body.id;
    };
    const run = async (script: string, body: Record<string, unknown> = {}): Promise<string> => {
      const id = await create(script, body);
      await waitForPodStatus(server.client(), id, 'RUNNING');
      return id;
    };
    const containers = async (id: string): Promise<{ Id: string; State: string }[]> =>
      docker.get<ListedContainer[]>('/containers/json', {
        all: true,
        filters: { label: [`berth.instance=${id}`] },
      });
    const writes = (id: string, line: string, times = 1): Promise<true> =>
      waitFor(
        `${id} writes ${line}`,
        async () =>
          (await containerLogLines(server.client(), id)).filter((found) => found === line).length >= times ||
          undefined,
      );
    const remove = async (...ids: string[]): Promise<void> => {
      for (const id of ids)
        assert.equal((await server.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
    };

    test('a life: made, running, restarted, stopped, started, terminated; disks as they should be', async () => {
      const say =
        'test -e /work/here && echo old-container || echo new-container; test -e /keep/there && echo ' +
        'kept || echo empty; touch /work/here /keep/there; echo "$RUNPOD_POD_ID $RUNPOD_DC_ID"; sleep ' +
        '1000';
      const id = await run(say, {
        cpu: undefined,
        gpu: { id: 'NVIDIA GeForce RTX 4090' },
        mounts: { persistent: { size: 10, path: '/keep' } },
      });
      assert.equal((await getPod(server.client(), id)).dataCenterId, 'DOCKER-1');
      await writes(id, `${id} DOCKER-1`);
      await podAction(server.client(), id, 'restart');
      await writes(id, `${id} DOCKER-1`, 2);
      await waitForPodStatus(server.client(), id, 'RUNNING');
      const stopped = await waitFor('it is stopped', async () => {
        const answer = await podAction(server.client(), id, 'stop');
        return answer.body.status === 'EXITED' || (await getPod(server.client(), id)).status === 'EXITED';
      });
      assert.ok(stopped);
      assert.ok((await containers(id)).every(({ State: state }) => state !== 'running'));
      assert.equal((await podAction(server.client(), id, 'start')).status, 200);
      await writes(id, `${id} DOCKER-1`, 3);
      assert.deepEqual(
        (await containerLogLines(server.client(), id)).filter((line) => !line.startsWith(id)),
        ['new-container', 'empty', 'new-container', 'kept', 'new-container', 'kept'],
      );
      await waitForPodStatus(server.client(), id, 'RUNNING');
      await remove(id);
      assert.deepEqual(await containers(id), []);
      assert.ok((await podLog(server.client(), id)).length > 0);
    });

    test('a TCP port is mapped, an unexpected end is reported, and usage is shown', async () => {
      const id = await create('', {
        cmd: [
          'node',
          '-e',
          "require('node:net').createServer((s) => s.on('error', () => s.destroy()).end('hello')).listen(2222)",
        ],
        ports: ['2222/tcp', '70001/tcp'],
      });
      await waitForPodStatus(server.client(), id, 'RUNNING');
      const mapped = await waitFor('the port is mapped', async () =>
        (await getPod(server.client(), id)).runtime?.ports.find(
          (port) => port.private === 2222 && port.public !== null,
        ),
      );
      assert.equal(mapped.ip, '127.0.0.1');
      const used = await getPod(server.client(), id);
      assert.ok((used.runtime?.memory.util ?? -1) >= 0, JSON.stringify(used));
      const failing = await create('echo "Error: out of luck"; exit 4');
      assert.match(
        (await waitForPodStatus(server.client(), failing, 'ERROR')).statusDetail ?? '',
        /code 4: Error: out of luck/,
      );
      await remove(id, failing);
    });

    test('a private image is pulled with saved credentials, with progress; a pull can be ended', {
      timeout: 120_000,
    }, async () => {
      const client = server.client();
      const refused = await create('sleep 1000', { image: registry.image('v1') });
      assert.match(
        (await waitForPodStatus(client, refused, 'ERROR')).statusDetail ?? '',
        /could not be pulled/,
      );
      const saved = (
        await client.call<{ id: string }>('POST', '/v2/registries', { name: 'private', ...registry.login })
      ).body.id;
      const id = await create('echo pulled; sleep 1000', { image: registry.image('v1'), registry: saved });
      const followed = parseLogEvents((await client.call('GET', `/v2/pods/${refused}/logs`)).text);
      assert.ok(followed.some(({ source, line }) => source === 'system' && /could not be pulled/.test(line)));
      await writes(id, 'pulled');
      assert.ok(
        (await podLog(client, id)).some(({ source, line }) => source === 'system' && /Pull/.test(line)),
      );
      const silent = await create('sleep 1000', {
        image: registry.image(registry.silentTag),
        registry: saved,
      });
      await waitFor('it is being pulled', async () =>
        /Pulling/.test((await getPod(client, silent)).statusDetail ?? ''),
      );
      const from = performance.now();
      assert.equal((await podAction(client, silent, 'stop')).body.status, 'EXITED');
      // The pull never ends.
      assert.ok(performance.now() - from < 30_000);
      await remove(refused, id, silent);
      await docker.delete(`/images/${registry.image('v1')}`, { force: true });
    });

    test(`killed while ${PODS} pods run: all go on, are taken up, and their logs have no gap`, {
      timeout: 200_000,
    }, async () => {
      const ids = await Promise.all(
        Array.from({ length: PODS }, () => create('i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done')),
      );
      for (const id of ids) await waitForPodStatus(server.client(), id, 'RUNNING');
      const before = new Map(
        await Promise.all(ids.map(async (id) => [id, (await containers(id))[0]?.Id] as const)),
      );
      const started = new Map(
        await Promise.all(
          ids.map(async (id) => [id, (await getPod(server.client(), id)).startedAt] as const),
        ),
      );
      await server.kill();
      await up();
      for (const id of ids) {
        const found = await waitForPodStatus(server.client(), id, 'RUNNING');
        assert.deepEqual([(await containers(id))[0]?.Id, found.startedAt], [before.get(id), started.get(id)]);
      }
      for (const id of ids) {
        const lines = await waitFor('it writes on', async () => {
          const written = await containerLogLines(server.client(), id);
          return written.length > 40 && written;
        });
        assert.deepEqual(
          lines,
          lines.map((_, index) => String(index + 1)),
        );
      }
      await Promise.all(ids.map((id) => remove(id)));
    });

    test('killed while pods run and some end: each is billed for the time that its container ran', {
      timeout: 200_000,
    }, async () => {
      const ids = await Promise.all(Array.from({ length: PODS }, () => create('sleep 1000')));
      for (const id of ids) await waitForPodStatus(server.client(), id, 'RUNNING');
      const ending = ids.slice(0, PODS / 2);
      await server.kill();
      const ran = new Map<string, number>();
      for (const id of ending) {
        const container = `/containers/${(await containers(id))[0]?.Id ?? ''}`;
        await docker.post(`${container}/kill`);
        await docker.wait(`${container}/wait`);
        const { State: state } = await docker.get<InspectedContainer>(`${container}/json`);
        ran.set(id, Date.parse(state.FinishedAt) - Date.parse(state.StartedAt));
      }
      const since = Date.now();
      await waitFor('it was away for a while', async () => Date.now() - since > 2_500);
      await up();
      for (const id of ending) await waitForPodStatus(server.client(), id, 'ERROR');
      for (const id of ids) {
        const began = Date.parse((await getPod(server.client(), id)).startedAt ?? '');
        const asking = Date.now();
        const { body } = await server
          .client()
          .call<{ timeBilledMs: number }[]>(
            'GET',
            `/v1/billing/pods?grouping=podId&bucketSize=year&podId=${id}`,
          );
        const billed = body.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0);
        const off = billed - (ran.get(id) ?? asking - began);
        assert.ok(
          // A running pod is shown up to 1.5 s behind: never above what its end will be charged.
          Math.abs(off) < 1_000 + (ran.has(id) ? 0 : 500 + Date.now() - asking),
          `${id} is billed for ${billed} ms, which is ${off} ms off`,
        );
      }
      await Promise.all(ids.map((id) => remove(id)));
    });
  });
});
