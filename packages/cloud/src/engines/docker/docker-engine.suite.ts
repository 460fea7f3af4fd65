import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { imageArchive } from '../../../../testing/src/docker-test-image.mjs';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { InstanceEvent, InstanceSpec } from '../instance.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { Daemon } from './daemon.ts';
import { type DockerEngine, type DockerEngineOptions, createDockerEngine } from './docker-engine.ts';
import { DockerClient } from './client/docker-client.ts';
import type { InspectedContainer, ListedContainer } from './client/docker-objects.ts';
import { ownershipFilter } from './container-labels.ts';
import { DockerTestProxy } from './docker-test-proxy.ts';
import { TestRegistry } from './docker-test-registry.ts';

const TIMEOUT_MS = 20_000;
const LONG_GRACE_MS = 60_000;

/** Tests of what only this driver does. They need a daemon and the test image. */
export function dockerEngineSuite(host: string, image: string): void {
  describe('the Docker engine by itself', () => {
    const docker = new DockerClient(host);
    let folder = '';
    let installation = '';
    let count = 0;
    const opened: DockerEngine[] = [];
    let volumes: string[] = [];
    let isPodman = false;

    before(async () => {
      volumes = await unusedVolumes();
      isPodman = await new Daemon(host).isPodman();
      folder = await mkdtemp(join(tmpdir(), 'berth-docker-engine-'));
      installation = `test-${process.pid}`;
    });
    after(async () => {
      const last = open();
      for (const { id } of await last.list()) await last.remove(id);
      for (const engine of opened) await engine.close();
      assert.deepEqual(
        await docker.get<ListedContainer[]>('/containers/json', {
          all: true,
          filters: ownershipFilter(installation),
        }),
        [],
      );
      assert.deepEqual(
        (await unusedVolumes()).filter((name) => !volumes.includes(name)),
        [],
      );
      await rm(folder, { recursive: true });
    });

    /** Other users of the daemon may have volumes of their own. */
    async function unusedVolumes(): Promise<string[]> {
      return (
        (
          await docker.get<{ Volumes: { Name: string }[] | null }>('/volumes', {
            filters: { dangling: ['true'] },
          })
        ).Volumes ?? []
      ).map(({ Name: name }) => name);
    }

    function open(options: Partial<DockerEngineOptions> = {}): DockerEngine {
      const engine = createDockerEngine({ installation, data: folder, host, ...options });
      opened.push(engine);
      return engine;
    }

    async function closeEngine(engine: DockerEngine): Promise<void> {
      opened.splice(opened.indexOf(engine), 1);
      await engine.close();
    }

    function spec(cmd: readonly string[], more: Partial<InstanceSpec> = {}): InstanceSpec {
      count += 1;
      return {
        id: `own-${process.pid}-${count}`,
        labels: {},
        image,
        command: { entrypoint: [], cmd },
        env: {},
        ports: [],
        mounts: [],
        cpu: 1,
        memoryInGb: 0.25,
        gpus: null,
        containerDiskInGb: 1,
        ...more,
      };
    }

    function lines(engine: DockerEngine, id: string, query: LogQuery = {}): Promise<LogLine[]> {
      return Array.fromAsync(engine.logs(id, query, AbortSignal.timeout(TIMEOUT_MS)));
    }

    async function waitForLine(engine: DockerEngine, id: string, wanted: string): Promise<void> {
      for await (const { line } of engine.logs(id, { follow: true }, AbortSignal.timeout(TIMEOUT_MS)))
        if (line === wanted) return;
      assert.fail(`${id} never wrote ${wanted}`);
    }

    function nextEnd(engine: DockerEngine, id: string): Promise<InstanceEvent> {
      const { promise, resolve } = Promise.withResolvers<InstanceEvent>();
      engine.watch((event) => {
        if (event.id === id && event.status === 'exited') resolve(event);
      });
      return promise;
    }

    function hasCode(code: string, message: RegExp): (error: unknown) => boolean {
      return (error) => error instanceof BerthError && error.code === code && message.test(error.message);
    }

    test('reports quickly whether a daemon answers', async () => {
      assert.equal(await open().available(), true);
      const absent = createDockerEngine({ installation, data: folder, host: `unix://${folder}/absent.sock` });
      const since = performance.now();
      assert.equal(await absent.available(), false);
      assert.ok(performance.now() - since < 1000);
      await assert.rejects(absent.capacity(), hasCode('unavailable', /absent\.sock/));
      await absent.close();
    });

    test('a container has the settings of the spec', async () => {
      const engine = open();
      const instanceSpec = spec(['sleep', '600'], {
        labels: { kind: 'worker', 'a.b/c': 'd' },
        cpu: 64,
        memoryInGb: 0.5,
        ports: [{ port: 80, protocol: 'http', listenPortVariable: 'PORT' }],
      });
      await engine.start(instanceSpec);
      const {
        Name: name,
        Config: config,
        HostConfig: hostConfig,
        NetworkSettings: network,
      } = await docker.get<InspectedContainer>(`/containers/berth-${instanceSpec.id}/json`);
      assert.equal(name, `/berth-${instanceSpec.id}`);
      assert.ok(config.Env?.includes('PORT=80'));
      assert.equal(config.Hostname, instanceSpec.id);
      const { NCPU: cores } = await docker.get<{ NCPU: number }>('/info');
      assert.deepEqual(
        [hostConfig.NanoCpus, hostConfig.Memory, hostConfig.Init, hostConfig.RestartPolicy?.Name || 'no'],
        [cores * 1e9, 512 * 1024 ** 2, true, 'no'],
      );
      assert.equal(network.Ports?.['80/tcp']?.[0]?.HostIp, '127.0.0.1');
      assert.deepEqual(
        (await engine.list()).find(({ id }) => id === instanceSpec.id)?.labels,
        instanceSpec.labels,
      );
      await engine.remove(instanceSpec.id);
    });

    test('without a command the command of the image runs', async () => {
      const engine = open();
      const instanceSpec = spec([]);
      await engine.start(instanceSpec);
      await waitForLine(engine, instanceSpec.id, 'the command of the image');
      await engine.remove(instanceSpec.id);
    });

    test('a container reaches a server on this machine', async () => {
      const engine = open();
      const server = createServer((_, response) => response.end('here I am'));
      await once(server.listen(0, (await engine.networkOfContainers())?.address).unref(), 'listening');
      const url = await engine.urlForContainers(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      await engine.allowServerUrl(url);
      const instanceSpec = spec([
        'node',
        '-e',
        `fetch('${url}').then((answer) => answer.text()).then(console.log)`,
      ]);
      await engine.start(instanceSpec);
      assert.deepEqual(
        (await lines(engine, instanceSpec.id, { follow: true, source: 'container' })).map(({ line }) => line),
        ['here I am'],
      );
      server.close();
      await engine.remove(instanceSpec.id);
    });

    test('running out of memory is logged', async (context) => {
      if (isPodman) return context.skip('Podman does not report it for containers with an init process');
      const engine = open();
      const instanceSpec = spec(
        ['node', '-e', 'const kept = []; for (;;) kept.push(Buffer.alloc(10_000_000, 1))'],
        {
          memoryInGb: 0.1,
        },
      );
      await engine.start(instanceSpec);
      const logged = await lines(engine, instanceSpec.id, { follow: true, source: 'system' });
      assert.deepEqual(
        logged.slice(-2).map(({ line }) => line),
        ['It ran out of memory: it may use 0.1 GB.', 'Ended with exit code 137 (SIGKILL).'],
      );
      await engine.remove(instanceSpec.id);
    });

    test('an exit is reported after the connection to the daemon was lost', async () => {
      const proxy = new DockerTestProxy(join(folder, 'proxy.sock'), host);
      await proxy.open();
      const engine = open({ host: proxy.host });
      const instanceSpec = spec([
        'sh',
        '-c',
        'i=0; while [ ! -e go ]; do i=$((i+1)); echo "line $i"; sleep 0.01; done; echo "last $i"; exit 4',
      ]);
      const ended = nextEnd(engine, instanceSpec.id);
      await engine.start(instanceSpec);
      await waitForLine(engine, instanceSpec.id, 'line 3');
      const following = lines(engine, instanceSpec.id, { follow: true, source: 'container' });
      await proxy.close();
      const container = `/containers/berth-${instanceSpec.id}`;
      const { Id: exec } = await docker.post<{ Id: string }>(`${container}/exec`, {
        body: { Cmd: ['touch', 'go'] },
      });
      await docker.post(`/exec/${exec}/start`, { body: { Detach: true } });
      await docker.wait(`${container}/wait`);
      await proxy.open();
      assert.equal((await ended).exitCode, 4);
      const written = (await following).map(({ line }) => line);
      const last = Number(written.at(-1)?.split(' ')[1]);
      assert.deepEqual(written, [
        ...Array.from({ length: last }, (_, index) => `line ${index + 1}`),
        `last ${last}`,
      ]);
      await engine.remove(instanceSpec.id);
      await closeEngine(engine);
      await proxy.close();
    });

    test('a container removed from outside has ended, and its log stays', async () => {
      const engine = open();
      const instanceSpec = spec(['sh', '-c', 'echo hello; sleep 600']);
      const ended = nextEnd(engine, instanceSpec.id);
      const handle = await engine.start(instanceSpec);
      await waitForLine(engine, instanceSpec.id, 'hello');
      await docker.delete(`/containers/berth-${instanceSpec.id}`, { force: true, v: true });
      await ended;
      assert.equal(
        (await engine.list()).some(({ id }) => id === instanceSpec.id),
        false,
      );
      assert.equal(await engine.adopt(handle), undefined);
      assert.ok((await lines(engine, instanceSpec.id)).some(({ line }) => line === 'hello'));
    });

    test('the container of an interrupted start is removed, containers of others are kept', async () => {
      const [ours, others] = await Promise.all(
        [installation, 'somebody-else'].map((owner) =>
          docker.post<{ Id: string }>('/containers/create', {
            body: { Image: image, Labels: { 'berth.installation': owner, 'berth.instance': 'half' } },
          }),
        ),
      );
      const engine = open();
      assert.equal(
        (await engine.list()).some(({ id }) => id === 'half'),
        false,
      );
      await assert.rejects(docker.get(`/containers/${ours?.Id}/json`), /no such container/i);
      const { State: state } = await docker.get<InspectedContainer>(`/containers/${others?.Id}/json`);
      assert.equal(state.Status, 'created');
      await docker.delete(`/containers/${others?.Id}`, { v: true });
    });

    test('a system line comes after the output written before it', async () => {
      const engine = open();
      const instanceSpec = spec([
        'sh',
        '-c',
        'echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; sleep 600',
      ]);
      await engine.start(instanceSpec);
      await waitForLine(engine, instanceSpec.id, 'one');
      await engine.logSystemLine(instanceSpec.id, 'between');
      await (await engine.exec(instanceSpec.id, ['touch', 'go'])).exited;
      await waitForLine(engine, instanceSpec.id, 'two');
      assert.deepEqual((await lines(engine, instanceSpec.id)).map(({ line }) => line).slice(1), [
        'one',
        'between',
        'two',
      ]);
      await engine.remove(instanceSpec.id);
    });

    test('the log of a removed instance is deleted after its retention', async () => {
      const clock = new ManualClock(Date.now());
      const engine = open({ clock, logRetentionMs: 1000 });
      const instanceSpec = spec(['sh', '-c', 'echo hello']);
      await engine.start(instanceSpec);
      await lines(engine, instanceSpec.id, { follow: true });
      await engine.remove(instanceSpec.id);
      assert.notDeepEqual(await lines(engine, instanceSpec.id), []);
      clock.advance(1000);
      await engine.remove('sweeps');
      assert.deepEqual(await lines(engine, instanceSpec.id), []);
    });

    test('a command can be killed, and an unknown one is refused', async () => {
      const engine = open();
      const instanceSpec = spec(['sleep', '600']);
      await engine.start(instanceSpec);
      const execution = await engine.exec(instanceSpec.id, ['sh', '-c', 'echo ready; sleep 600']);
      await once(execution.stdout, 'data');
      execution.kill('SIGINT');
      assert.equal((await execution.exited).signal, 'SIGINT');
      await assert.rejects(
        engine.exec(instanceSpec.id, ['no-such-command']),
        hasCode('rule', /no-such-command/),
      );
      const loud = await engine.exec(instanceSpec.id, [
        'node',
        '-e',
        'process.stdout.write("o".repeat(3e6)); process.stderr.write("e".repeat(2e6))',
      ]);
      const [out, err] = await Promise.all([text(loud.stdout), text(loud.stderr)]);
      assert.deepEqual([out, err], ['o'.repeat(3e6), 'e'.repeat(2e6)]);
      await engine.remove(instanceSpec.id);
    });

    describe('with a registry', () => {
      const registry = new TestRegistry(Buffer.concat([...imageArchive(['sh', 'sleep'])]));
      before(() => registry.open());
      after(() => registry.close());

      test('an image is pulled once, with the credentials', async (context) => {
        if (isPodman) return context.skip('Podman requires TLS for a registry on the loopback');
        const engine = open();
        const name = registry.image('v1');
        const progress: string[] = [];
        const instanceSpec = spec([], {
          image: name,
          registry: registry.login,
          onProgress: (line) => progress.push(line),
        });
        await engine.start(instanceSpec);
        await waitForLine(engine, instanceSpec.id, 'from the registry');
        assert.equal(progress[0], `Pulling the image ${name}.`);
        assert.ok(progress.includes('The image is here.'), progress.join('\n'));
        assert.deepEqual(
          (await lines(engine, instanceSpec.id, { source: 'system' })).map(({ line }) => line),
          progress,
        );
        await engine.remove(instanceSpec.id);
        const asked = registry.requests;
        const again = spec([], { image: name });
        await engine.start(again);
        await engine.remove(again.id);
        assert.equal(registry.requests, asked);
        await docker.delete(`/images/${name}`);
      });

      test('an image that was pulled is deleted when nothing was started from it for long', async (context) => {
        if (isPodman) return context.skip('Podman requires TLS for a registry on the loopback');
        const clock = new ManualClock(Date.now());
        const engine = open({ clock });
        const name = registry.image('v1');
        const instanceSpec = spec([], { image: name, registry: registry.login });
        await engine.start(instanceSpec);
        clock.advance(1000);
        // A container uses it.
        const none = new Set<string>();
        assert.deepEqual(await engine.pruneImages(clock.now(), none), []);
        await engine.remove(instanceSpec.id);
        assert.deepEqual(await engine.pruneImages(clock.now() - 1000, none), []);
        // An endpoint names it, or could be rolled back to it.
        assert.deepEqual(await engine.pruneImages(clock.now(), new Set(['local/x:1', name])), []);
        assert.deepEqual(await engine.pruneImages(clock.now(), none), [name]);
        await assert.rejects(docker.get(`/images/${name}/json`), /no such image/i);
        assert.deepEqual(await engine.pruneImages(clock.now(), none), []);
      });

      test('an image is looked for at the daemon and at its registry', async (context) => {
        if (isPodman) return context.skip('Podman cannot ask a registry');
        const engine = open();
        assert.equal(await engine.imageLookupProblem(spec([]).image), undefined);
        assert.match(
          (await engine.imageLookupProblem(registry.image('v1'))) ?? '',
          /could not be pulled: .*(?:unauthorized|no basic auth|authentication required)/i,
        );
        assert.equal(await engine.imageLookupProblem(registry.image('v1'), registry.login), undefined);
        assert.match(
          (await engine.imageLookupProblem(registry.image('v9'), registry.login)) ?? '',
          /v9 could not be pulled: .*(?:unknown|not found)/i,
        );
        // Nobody can tell.
        assert.equal(await engine.imageLookupProblem('127.0.0.1:1/team/image:v1'), undefined);
      });

      test('wrong credentials and an unknown image are permanent errors', async (context) => {
        if (isPodman) return context.skip('Podman requires TLS for a registry on the loopback');
        const engine = open();
        const wrong = spec([], {
          image: registry.image('v1'),
          registry: { username: 'reader', password: 'wrong' },
        });
        await assert.rejects(
          engine.start(wrong),
          hasCode(
            'rule',
            /team\/image:v1 could not be pulled: .*(?:unauthorized|no basic auth|authentication required)/i,
          ),
        );
        const unknown = spec([], { image: registry.image('v9'), registry: registry.login });
        await assert.rejects(engine.start(unknown), hasCode('rule', /v9/));
        assert.match((await lines(engine, unknown.id)).at(-1)?.line ?? '', /^Not started: .*v9/);
        await assert.rejects(engine.logSystemLine(unknown.id, 'anyone?'), hasCode('not-found', /./));
      });

      test('an unreachable registry is a temporary error', async () => {
        await assert.rejects(
          open().start(spec([], { image: '127.0.0.1:1/team/image:v1' })),
          hasCode('unavailable', /127\.0\.0\.1:1/),
        );
      });

      test('removing the instance cancels its pull', async () => {
        const engine = open();
        const instanceSpec = spec([], {
          image: registry.image(registry.silentTag),
          registry: registry.login,
        });
        const starting = engine.start(instanceSpec);
        const refused = assert.rejects(starting, hasCode('state', /while it started/));
        await waitForLine(engine, instanceSpec.id, `Pulling the image ${instanceSpec.image}.`);
        await engine.remove(instanceSpec.id, LONG_GRACE_MS);
        await refused;
      });
    });
  });
}
