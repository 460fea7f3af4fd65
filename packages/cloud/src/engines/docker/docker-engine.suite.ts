import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import Docker from 'dockerode';
import { imageArchive } from '../../../../testing/src/docker-test-image.mjs';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { InstanceEvent, InstanceSpec } from '../instance.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { Daemon } from './daemon.ts';
import { type DockerEngine, type DockerEngineOptions, createDockerEngine } from './docker-engine.ts';
import { dockerClientOptions } from './daemon-discovery.ts';
import { ownershipFilter } from './container-labels.ts';
import { DockerTestProxy } from './docker-test-proxy.ts';
import { TestRegistry } from './docker-test-registry.ts';

const PATIENCE_MS = 20_000;
const LONG_GRACE_MS = 60_000;

/** What only this driver does. The daemon and the image are there. */
export function dockerEngineSuite(host: string, image: string): void {
  describe('the Docker engine by itself', () => {
    const docker = new Docker(dockerClientOptions(host));
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
        await docker.listContainers({ all: true, filters: ownershipFilter(installation) }),
        [],
      );
      assert.deepEqual(
        (await unusedVolumes()).filter((name) => !volumes.includes(name)),
        [],
      );
      await rm(folder, { recursive: true });
    });

    /** Others may use the daemon at the same time, and volumes of theirs. */
    async function unusedVolumes(): Promise<string[]> {
      return (
        (await docker.listVolumes({ filters: JSON.stringify({ dangling: ['true'] }) })).Volumes ?? []
      ).map(({ Name: name }) => name);
    }

    function open(parts: Partial<DockerEngineOptions> = {}): DockerEngine {
      const engine = createDockerEngine({ installation, data: folder, host, ...parts });
      opened.push(engine);
      return engine;
    }

    async function leave(engine: DockerEngine): Promise<void> {
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
      return Array.fromAsync(engine.logs(id, query, AbortSignal.timeout(PATIENCE_MS)));
    }

    async function said(engine: DockerEngine, id: string, wanted: string): Promise<void> {
      for await (const { line } of engine.logs(id, { follow: true }, AbortSignal.timeout(PATIENCE_MS)))
        if (line === wanted) return;
      assert.fail(`${id} never said ${wanted}`);
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

    test('says soon whether a daemon answers', async () => {
      assert.equal(await open().available(), true);
      const absent = createDockerEngine({ installation, data: folder, host: `unix://${folder}/absent.sock` });
      const since = performance.now();
      assert.equal(await absent.available(), false);
      assert.ok(performance.now() - since < 1000);
      await assert.rejects(absent.capacity(), hasCode('unavailable', /absent\.sock/));
      await absent.close();
    });

    test('a container is what the instance asks for, and no more', async () => {
      const engine = open();
      const wish = spec(['sleep', '600'], {
        labels: { kind: 'worker', 'a.b/c': 'd' },
        cpu: 64,
        memoryInGb: 0.5,
        ports: [{ port: 80, protocol: 'http', listenPortVariable: 'PORT' }],
      });
      await engine.start(wish);
      const {
        Name: name,
        Config: config,
        HostConfig: hostConfig,
        NetworkSettings: network,
      } = await docker.getContainer(`berth-${wish.id}`).inspect();
      assert.equal(name, `/berth-${wish.id}`);
      assert.ok(config.Env.includes('PORT=80'));
      assert.equal(config.Hostname, wish.id);
      const { NCPU: cores } = (await docker.info()) as { NCPU: number };
      assert.deepEqual(
        [hostConfig.NanoCpus, hostConfig.Memory, hostConfig.Init, hostConfig.RestartPolicy?.Name || 'no'],
        [cores * 1e9, 512 * 1024 ** 2, true, 'no'],
      );
      assert.equal(network.Ports['80/tcp']?.[0]?.HostIp, '127.0.0.1');
      assert.deepEqual((await engine.list()).find(({ id }) => id === wish.id)?.labels, wish.labels);
      await engine.remove(wish.id);
    });

    test('without a command the image has its own', async () => {
      const engine = open();
      const wish = spec([]);
      await engine.start(wish);
      await said(engine, wish.id, 'the command of the image');
      await engine.remove(wish.id);
    });

    test('a container reaches a server on this machine', async () => {
      const engine = open();
      const server = createServer((_, response) => response.end('here I am'));
      await once(server.listen(0, (await engine.networkOfContainers())?.address).unref(), 'listening');
      const url = await engine.urlForContainers(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      const wish = spec(['node', '-e', `fetch('${url}').then((answer) => answer.text()).then(console.log)`]);
      await engine.start(wish);
      assert.deepEqual(
        (await lines(engine, wish.id, { follow: true, source: 'container' })).map(({ line }) => line),
        ['here I am'],
      );
      server.close();
      await engine.remove(wish.id);
    });

    test('one that runs out of memory is told so', async (context) => {
      if (isPodman) return context.skip('Podman does not tell, where containers have an init process');
      const engine = open();
      const wish = spec(['node', '-e', 'const kept = []; for (;;) kept.push(Buffer.alloc(10_000_000, 1))'], {
        memoryInGb: 0.1,
      });
      await engine.start(wish);
      const told = await lines(engine, wish.id, { follow: true, source: 'system' });
      assert.deepEqual(
        told.slice(-2).map(({ line }) => line),
        ['It ran out of memory: it may use 0.1 GB.', 'Ended with exit code 137 (SIGKILL).'],
      );
      await engine.remove(wish.id);
    });

    test('an exit is told also when the daemon was out of reach', async () => {
      const link = new DockerTestProxy(join(folder, 'link.sock'), host);
      await link.open();
      const engine = open({ host: link.host });
      const wish = spec([
        'sh',
        '-c',
        'i=0; while [ ! -e go ]; do i=$((i+1)); echo "line $i"; sleep 0.01; done; echo "last $i"; exit 4',
      ]);
      const ended = nextEnd(engine, wish.id);
      await engine.start(wish);
      await said(engine, wish.id, 'line 3');
      const following = lines(engine, wish.id, { follow: true, source: 'container' });
      await link.close();
      const exec = await docker.getContainer(`berth-${wish.id}`).exec({ Cmd: ['touch', 'go'] });
      (await exec.start({ Detach: true })).resume();
      await docker.getContainer(`berth-${wish.id}`).wait();
      await link.open();
      assert.equal((await ended).exitCode, 4);
      const spoken = (await following).map(({ line }) => line);
      const last = Number(spoken.at(-1)?.split(' ')[1]);
      assert.deepEqual(spoken, [
        ...Array.from({ length: last }, (_, index) => `line ${index + 1}`),
        `last ${last}`,
      ]);
      await engine.remove(wish.id);
      await leave(engine);
      await link.close();
    });

    test('what somebody else removes has ended, and its log stays', async () => {
      const engine = open();
      const wish = spec(['sh', '-c', 'echo hello; sleep 600']);
      const ended = nextEnd(engine, wish.id);
      const handle = await engine.start(wish);
      await said(engine, wish.id, 'hello');
      await docker.getContainer(`berth-${wish.id}`).remove({ force: true, v: true });
      await ended;
      assert.equal(
        (await engine.list()).some(({ id }) => id === wish.id),
        false,
      );
      assert.equal(await engine.adopt(handle), undefined);
      assert.ok((await lines(engine, wish.id)).some(({ line }) => line === 'hello'));
    });

    test('what a start that was cut off left is cleared away, what is not ours is left alone', async () => {
      const [ours, others] = await Promise.all(
        [installation, 'somebody-else'].map((owner) =>
          docker.createContainer({
            Image: image,
            Labels: { 'berth.installation': owner, 'berth.instance': 'half' },
          }),
        ),
      );
      const engine = open();
      assert.equal(
        (await engine.list()).some(({ id }) => id === 'half'),
        false,
      );
      await assert.rejects(ours?.inspect() ?? Promise.resolve(), /no such container/i);
      assert.equal((await others?.inspect())?.State.Status, 'created');
      await others?.remove({ v: true });
    });

    test('a system line stands after what was written before it', async () => {
      const engine = open();
      const wish = spec([
        'sh',
        '-c',
        'echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; sleep 600',
      ]);
      await engine.start(wish);
      await said(engine, wish.id, 'one');
      await engine.logSystemLine(wish.id, 'between');
      await (await engine.exec(wish.id, ['touch', 'go'])).exited;
      await said(engine, wish.id, 'two');
      assert.deepEqual((await lines(engine, wish.id)).map(({ line }) => line).slice(1), [
        'one',
        'between',
        'two',
      ]);
      await engine.remove(wish.id);
    });

    test('the log of an instance that was removed goes when its time is over', async () => {
      const clock = new ManualClock(Date.now());
      const engine = open({ clock, logRetentionMs: 1000 });
      const wish = spec(['sh', '-c', 'echo hello']);
      await engine.start(wish);
      await lines(engine, wish.id, { follow: true });
      await engine.remove(wish.id);
      assert.notDeepEqual(await lines(engine, wish.id), []);
      clock.advance(1000);
      await engine.remove('sweeps');
      assert.deepEqual(await lines(engine, wish.id), []);
    });

    test('a command beside it can be ended, and one that is not there is refused', async () => {
      const engine = open();
      const wish = spec(['sleep', '600']);
      await engine.start(wish);
      const execution = await engine.exec(wish.id, ['sh', '-c', 'echo ready; sleep 600']);
      await once(execution.stdout, 'data');
      execution.kill('SIGINT');
      assert.equal((await execution.exited).signal, 'SIGINT');
      await assert.rejects(engine.exec(wish.id, ['no-such-command']), hasCode('rule', /no-such-command/));
      const loud = await engine.exec(wish.id, [
        'node',
        '-e',
        'process.stdout.write("o".repeat(3e6)); process.stderr.write("e".repeat(2e6))',
      ]);
      const [out, err] = await Promise.all([text(loud.stdout), text(loud.stderr)]);
      assert.deepEqual([out, err], ['o'.repeat(3e6), 'e'.repeat(2e6)]);
      await engine.remove(wish.id);
    });

    describe('with a registry', () => {
      const registry = new TestRegistry(Buffer.concat([...imageArchive(['sh', 'sleep'])]));
      before(() => registry.open());
      after(() => registry.close());

      test('an image is pulled with the login, and not again', async (context) => {
        if (isPodman) return context.skip('Podman wants TLS of a registry on the loopback too');
        const engine = open();
        const name = registry.image('v1');
        const heard: string[] = [];
        const wish = spec([], {
          image: name,
          registry: registry.login,
          onProgress: (line) => heard.push(line),
        });
        await engine.start(wish);
        await said(engine, wish.id, 'from the registry');
        assert.equal(heard[0], `Pulling the image ${name}.`);
        assert.ok(heard.includes('The image is here.'), heard.join('\n'));
        assert.deepEqual(
          (await lines(engine, wish.id, { source: 'system' })).map(({ line }) => line),
          heard,
        );
        await engine.remove(wish.id);
        const asked = registry.requests;
        const again = spec([], { image: name });
        await engine.start(again);
        await engine.remove(again.id);
        assert.equal(registry.requests, asked);
        await docker.getImage(name).remove();
      });

      test('a wrong login and an image that is not there are refused for good', async (context) => {
        if (isPodman) return context.skip('Podman wants TLS of a registry on the loopback too');
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

      test('a registry that cannot be reached is a matter of time', async () => {
        await assert.rejects(
          open().start(spec([], { image: '127.0.0.1:1/team/image:v1' })),
          hasCode('unavailable', /127\.0\.0\.1:1/),
        );
      });

      test('a pull ends with the wish for it', async () => {
        const engine = open();
        const wish = spec([], { image: registry.image(registry.silentTag), registry: registry.login });
        const starting = engine.start(wish);
        const refused = assert.rejects(starting, hasCode('state', /while it started/));
        await said(engine, wish.id, `Pulling the image ${wish.image}.`);
        await engine.remove(wish.id, LONG_GRACE_MS);
        await refused;
      });
    });
  });
}
