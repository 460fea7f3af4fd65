import assert from 'node:assert/strict';
import { afterEach, before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  parseLogEvents,
  waitForPodStatus,
  containerLogLines,
  podLog,
  getPod,
  processesOfInstance,
  createRunningPod,
  SLEEP_COMMAND,
} from '../packages/testing/src/pod-client.ts';
import type { PodView, V1Pod } from '../packages/testing/src/pod-client.ts';
import { PodFixture } from '../packages/testing/src/pod-test-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const RTX = 'NVIDIA GeForce RTX 4090';
const A100 = 'NVIDIA A100 80GB PCIe';
const FULL =
  /There are no longer any instances available with the requested specifications\. Please refresh and try again\./;

for (const kind of DATABASES) {
  describe(`the life of pods, on ${kind}`, () => {
    const pods = new PodFixture(kind);
    const { refusal, terminate, writes, writesTimes } = pods;
    let ann: TestAccount;
    let bob: TestAccount;
    before(async () => {
      ({ ann, bob } = await pods.createAccounts());
    });
    afterEach(pods.deletePods);

    test('what survives: the volume disk until terminate, the container disk not even a stop', async () => {
      const say =
        'for f in here.txt "$BERTH_ROOT/workspace/kept.txt"; do test -e "$f" && echo "found $f" || ' +
        'echo "no $f"; done; touch here.txt "$BERTH_ROOT/workspace/kept.txt"; echo ready; exec sleep ' +
        '1000';
      const { id } = await createRunningPod(ann, {
        gpu: { id: A100 },
        cmd: ['sh', '-c', say],
        mounts: { persistent: { size: 10, path: '/workspace' } },
      });
      await writesTimes(id, 'ready', 1);
      await podAction(ann, id, 'stop');
      await podAction(ann, id, 'start');
      await writesTimes(id, 'ready', 2);
      await waitForPodStatus(ann, id, 'RUNNING');
      await podAction(ann, id, 'restart');
      await writesTimes(id, 'ready', 3);
      const lines = (await containerLogLines(ann, id))
        .filter((line) => line !== 'ready')
        .map((line) => line.replace(/\S*\//, ''));
      assert.deepEqual(
        lines,
        ['no here.txt', 'no kept.txt', 'no here.txt', 'found kept.txt', 'no here.txt', 'found kept.txt'].map(
          (line) => line.replace(/\S*\//, ''),
        ),
      );
      await waitForPodStatus(ann, id, 'RUNNING');
      const grown = await ann.call<PodView>('PATCH', `/v2/pods/${id}`, {
        mounts: { persistent: { size: 20, path: '/workspace' } },
      });
      assert.deepEqual(
        [grown.body.status, grown.body.mounts.persistent?.size],
        ['RUNNING', 20],
        'it grows while in use',
      );
      assert.equal(
        (
          await ann.call('PATCH', `/v2/pods/${id}`, {
            mounts: { persistent: { size: 19, path: '/workspace' } },
          })
        ).status,
        400,
      );
      await terminate(id);
    });

    test('a network volume: shared by several at once, kept always, and not deleted while attached', async () => {
      const volume = (
        await ann.call<{ id: string }>('POST', '/v2/network-volumes', {
          name: 'shared',
          size: 10,
          dataCenter: 'LOCAL-2',
        })
      ).body.id;
      const mounts = { network: [{ volumeId: volume, path: '/workspace' }] };
      const one = await createRunningPod(ann, {
        mounts,
        cmd: [
          'sh',
          '-c',
          'echo from-one > "$BERTH_ROOT/workspace/note"; echo "volume $RUNPOD_VOLUME_ID"; exec sleep 1000',
        ],
      });
      assert.equal(one.dataCenterId, 'LOCAL-2', 'the volume says where');
      await writes(one.id, `volume ${volume}`);
      const two = await createRunningPod(ann, {
        mounts,
        cmd: ['sh', '-c', 'cat "$BERTH_ROOT/workspace/note"; exec sleep 1000'],
      });
      await writes(two.id, 'from-one');
      const refused = await ann.call('DELETE', `/v2/network-volumes/${volume}`);
      assert.deepEqual([refused.status, /has this network volume/.test(refused.text)], [400, true]);
      await terminate(one.id, two.id);
      const three = await createRunningPod(ann, {
        mounts,
        cmd: ['sh', '-c', 'cat "$BERTH_ROOT/workspace/note"; exec sleep 1000'],
      });
      await writes(three.id, 'from-one');
      assert.equal(
        (await createPod(ann, { mounts, dataCenterIds: ['LOCAL-1'] })).status,
        400,
        'a volume of another data center',
      );
      assert.equal((await createPod(bob, { mounts })).status, 400, "someone else's volume");
      assert.equal(
        (
          await ann.call('PATCH', `/v2/pods/${three.id}`, {
            mounts: { persistent: { size: 10, path: '/workspace' } },
          })
        ).status,
        400,
      );
      await terminate(three.id);
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${volume}`)).status, 204);
    });

    test('a template is taken once: its variables are merged by name, later changes do not reach the pod', async () => {
      const made = await ann.call<{ id: string }>('POST', '/v2/templates', {
        name: 'for pods',
        image: 'local/shell',
        cmd: SLEEP_COMMAND,
        env: { A: 'template', B: 'template' },
        ports: ['81/http'],
        disk: 9,
      });
      const templateId = made.body.id;
      const { id } = await createRunningPod(ann, {
        image: undefined,
        cmd: undefined,
        templateId,
        env: { B: 'pod', C: 'pod' },
      });
      await ann.call('PATCH', `/v2/templates/${templateId}`, { env: { A: 'changed' } });
      assert.partialDeepStrictEqual(await getPod(ann, id), {
        template: null,
        image: 'local/shell',
        env: { A: 'template', B: 'pod', C: 'pod' },
        ports: ['81/http'],
        disk: 9,
      });
      assert.deepEqual(Object.keys((await getPod(ann, id)).env).sort(), ['A', 'B', 'C']);
      const v1 = (
        await ann.call<V1Pod>('POST', '/v1/pods', {
          name: 'x',
          templateId,
          computeType: 'CPU',
          env: { B: 'v1' },
        })
      ).body;
      assert.deepEqual(
        [v1.templateId, v1.env, v1.ports],
        [templateId, { A: 'changed', B: 'v1' }, ['81/http']],
      );
      assert.equal((await ann.call('DELETE', `/v2/templates/${templateId}`)).status, 400);
      await terminate(id, v1.id);
      assert.equal((await ann.call('DELETE', `/v2/templates/${templateId}`)).status, 204);
      assert.equal((await createPod(ann, { image: undefined, templateId: 'unknown' })).status, 404);
      const serverless = (
        await ann.call<{ id: string }>('POST', '/v2/templates', {
          name: 'for endpoints',
          image: 'local/shell',
          serverless: true,
        })
      ).body.id;
      assert.equal((await createPod(ann, { image: undefined, templateId: serverless })).status, 422);
      assert.equal(
        (await ann.call('POST', '/v1/pods', { computeType: 'CPU', templateId: serverless })).status,
        400,
      );
    });

    test('GPU types and data centers are tried in order; a lack of capacity has the known message', async () => {
      const gpu = { id: RTX, count: 2 };
      const first = await createRunningPod(ann, { gpu });
      const full = await createPod(ann, { gpu: { id: RTX } });
      assert.equal(full.status, 400);
      assert.match(full.text, FULL);
      assert.match(
        (
          await ann.call('POST', '/v1/pods', {
            imageName: 'local/shell',
            dockerStartCmd: SLEEP_COMMAND,
            gpuTypeIds: [RTX],
          })
        ).text,
        FULL,
      );
      assert.match(
        await refusal(
          'mutation { podFindAndDeployOnDemand(input: { imageName: "local/shell", dockerArgs: "sleep ' +
            '1000", gpuTypeId: "NVIDIA GeForce RTX 4090" }) { id } }',
        ),
        FULL,
      );
      const second = (
        await ann.call<V1Pod>('POST', '/v1/pods', {
          imageName: 'local/shell',
          dockerStartCmd: SLEEP_COMMAND,
          gpuTypeIds: [RTX, A100, 'NVIDIA H100 80GB HBM3'],
          gpuTypePriority: 'custom',
          dataCenterIds: ['LOCAL-2', 'LOCAL-1'],
          dataCenterPriority: 'custom',
        })
      ).body;
      assert.deepEqual([second.gpu?.id, (await getPod(ann, second.id)).dataCenterId], [A100, 'LOCAL-2']);
      await podAction(ann, first.id, 'stop');
      const pendingTake = await createRunningPod(ann, { gpu });
      const start = await podAction(ann, first.id, 'start');
      assert.deepEqual([start.status, (await getPod(ann, first.id)).status], [400, 'EXITED']);
      assert.match(start.text, FULL);
      assert.equal((await ann.call('POST', `/v1/pods/${first.id}/start`)).status, 400);
      await terminate(pendingTake.id);
      assert.equal((await podAction(ann, first.id, 'start')).status, 200);
      await waitForPodStatus(ann, first.id, 'RUNNING');
      await terminate(first.id, second.id);
    });

    test('many that ask at once for the last GPUs: as many as there are get one', async () => {
      const made = await Promise.all(
        Array.from({ length: 6 }, () => createPod(ann, { gpu: { id: 'NVIDIA H100 80GB HBM3' } })),
      );
      const ids = made.filter(({ status }) => status === 201).map(({ body }) => body.id);
      assert.deepEqual([ids.length, made.filter(({ status }) => status === 400).length], [2, 4]);
      for (const id of ids) await waitForPodStatus(ann, id, 'RUNNING');
      await terminate(...ids);
    });

    test('a pod that ends by itself is EXITED with code 0, else ERROR with the reason', async () => {
      const well = (await createPod(ann, { cmd: ['sh', '-c', 'echo done'] })).body.id;
      const badly = (await createPod(ann, { cmd: ['sh', '-c', 'echo "Error: no such model" >&2; exit 3'] }))
        .body.id;
      const never = (await createPod(ann, { cmd: ['no-such-program'] })).body.id;
      const secret = (await createPod(ann, { env: { TOKEN: '{{ RUNPOD_SECRET_missing }}' } })).body.id;
      assert.deepEqual(
        [(await waitForPodStatus(ann, well, 'EXITED')).statusDetail, (await getPod(ann, well)).actions],
        [null, ['start', 'terminate']],
      );
      assert.match(
        (await waitForPodStatus(ann, badly, 'ERROR')).statusDetail ?? '',
        /code 3: Error: no such model/,
      );
      assert.match((await waitForPodStatus(ann, never, 'ERROR')).statusDetail ?? '', /no-such-program/);
      assert.match((await waitForPodStatus(ann, secret, 'ERROR')).statusDetail ?? '', /missing/);
      assert.match(
        (await podLog(ann, secret)).map(({ source, line }) => `${source} ${line}`).join(),
        /system .*missing/,
      );
      assert.equal((await ann.call<V1Pod>('GET', `/v1/pods/${badly}`)).body.desiredStatus, 'EXITED');
      await ann.call('POST', '/v2/account/secrets', { name: 'missing', value: 'found it' });
      await ann.call('PATCH', `/v2/pods/${secret}`, {
        cmd: ['sh', '-c', 'echo "token: $TOKEN"; exec sleep 1000'],
      });
      assert.equal((await podAction(ann, secret, 'start')).status, 200);
      await writes(secret, 'token: found it');
      assert.equal(
        (await waitForPodStatus(ann, secret, 'RUNNING')).env['TOKEN'],
        '{{ RUNPOD_SECRET_missing }}',
      );
      await terminate(well, badly, never, secret);
    });

    test('its environment tells a pod who it is, with keys and a password where they are wanted', async () => {
      await ann.call('PUT', '/v2/account/ssh-keys', { keys: ['ssh-ed25519 AAAA ann@home'] });
      const show = ['sh', '-c', 'env | sort; echo end; exec sleep 1000'];
      const gpu = { id: A100, count: 1 };
      const { id, env } = await createRunningPod(ann, {
        gpu,
        cmd: show,
        startSsh: true,
        startJupyter: true,
        env: { RUNPOD_POD_ID: 'mine', OWN: 'yes' },
        ports: ['22/tcp'],
      });
      await writes(id, 'end');
      const seen = new Map(
        (await containerLogLines(ann, id)).map((line) => line.split(/=(.*)/s, 2) as [string, string]),
      );
      const expected = {
        RUNPOD_POD_ID: id,
        RUNPOD_POD_HOSTNAME: id,
        RUNPOD_DC_ID: 'LOCAL-1',
        RUNPOD_GPU_COUNT: '1',
        RUNPOD_CPU_COUNT: '4',
        RUNPOD_PUBLIC_IP: '127.0.0.1',
        PUBLIC_KEY: 'ssh-ed25519 AAAA ann@home',
        OWN: 'yes',
      };
      for (const [name, value] of Object.entries(expected)) assert.equal(seen.get(name), value, name);
      assert.match(seen.get('RUNPOD_TCP_PORT_22') ?? '', /^\d+$/);
      assert.equal(seen.get('JUPYTER_PASSWORD'), env['JUPYTER_PASSWORD']);
      assert.ok((env['JUPYTER_PASSWORD'] ?? '').length >= 16);
      await terminate(id);
    });

    test('a TCP port is shown where it is reached, once something listens there', async () => {
      const serve =
        "require('node:net').createServer((s) => " +
        "s.end('hello')).listen(Number(process.env.RUNPOD_TCP_PORT_2222), '127.0.0.1')";
      const { id } = await createRunningPod(ann, { cmd: ['node', '-e', serve], ports: ['2222/tcp'] });
      const mapped = await waitFor(
        'the port is mapped',
        async () => (await ann.call<V1Pod>('GET', `/v1/pods/${id}`)).body.portMappings?.['2222'],
      );
      const { runtime } = await getPod(ann, id);
      assert.deepEqual(runtime?.ports, [{ private: 2222, public: mapped, type: 'tcp', ip: '127.0.0.1' }]);
      await terminate(id);
    });

    test('at its given instants a pod is stopped and terminated; a lock holds that off', async () => {
      const soon = new Date(Date.now() + 1500).toISOString();
      const stopping = await createPod(ann, { stopAfter: soon });
      const ending = await createPod(ann, { terminateAfter: soon });
      const lockedPod = await createPod(ann, {});
      await ann.call('PATCH', `/v2/pods/${lockedPod.body.id}`, { stopAfter: soon, locked: true });
      await waitForPodStatus(ann, stopping.body.id, 'EXITED');
      await waitFor(
        'it is terminated',
        async () => (await ann.call('GET', `/v2/pods/${ending.body.id}`)).status === 404,
      );
      assert.deepEqual(
        [processesOfInstance(stopping.body.id), processesOfInstance(ending.body.id)],
        [[], []],
      );
      assert.equal((await getPod(ann, lockedPod.body.id)).status, 'RUNNING');
      await ann.call('PATCH', `/v2/pods/${lockedPod.body.id}`, { locked: false });
      await waitForPodStatus(ann, lockedPod.body.id, 'EXITED');
      assert.equal((await podAction(ann, stopping.body.id, 'start')).status, 200);
      await waitForPodStatus(ann, stopping.body.id, 'RUNNING');
      await terminate(stopping.body.id, lockedPod.body.id);
    });

    test('the log: the last lines, since a time, after an event, of one source, and followed to the end', async () => {
      const { id } = (
        await createPod(ann, {
          cmd: ['sh', '-c', 'for i in 1 2 3 4 5; do echo "line $i"; done; sleep 0.3; echo last'],
        })
      ).body;
      const followed = await ann.call('GET', `/v2/pods/${id}/logs`);
      assert.equal(followed.headers.get('content-type'), 'text/event-stream; charset=utf-8');
      const all = parseLogEvents(followed.text);
      assert.deepEqual(
        all.filter(({ source }) => source === 'container').map(({ line }) => line),
        ['line 1', 'line 2', 'line 3', 'line 4', 'line 5', 'last'],
      );
      assert.ok(all.some(({ source, line }) => source === 'system' && line.startsWith('Starting')));
      const lines = async (query: string, headers?: Record<string, string>) =>
        (await podLog(ann, id, query, headers)).map(({ line }) => line);
      assert.deepEqual(await lines('&tail=2&source=container'), ['line 5', 'last']);
      assert.deepEqual(await lines('&tail=0'), []);
      assert.ok((await lines('&source=system')).every((line) => !line.startsWith('line')));
      const third = all.find(({ line }) => line === 'line 3');
      assert.deepEqual(await lines('&source=container&tail=1', { 'last-event-id': third?.id ?? '' }), [
        'line 4',
        'line 5',
        'last',
      ]);
      assert.deepEqual(
        await lines(`&since=${encodeURIComponent(new Date(Date.now() + 60_000).toISOString())}`),
        [],
      );
      assert.equal((await ann.call('GET', `/v2/pods/${id}/logs?tail=5001`)).status, 422);
      assert.equal((await bob.call('GET', `/v2/pods/${id}/logs`)).status, 404);
      await terminate(id);
    });

    test('lists go page by page, newest first', async () => {
      const ids: string[] = [];
      for (let index = 0; index < 5; index += 1)
        ids.unshift((await createPod(bob, { name: `p${index}`, cmd: ['true'] })).body.id);
      type Page = { pods: PodView[]; pagination: { nextCursor: string | null; hasNextPage: boolean } };
      const seen: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { body }: { body: Page } = await bob.call<Page>(
          'GET',
          `/v2/pods?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`,
        );
        seen.push(...body.pods.map((found) => found.id));
        cursor = body.pagination.nextCursor;
      }
      assert.deepEqual(seen, ids);
      assert.equal((await bob.call('GET', '/v2/pods?cursor=nonsense')).status, 422);
      for (const id of ids) assert.equal((await bob.call('DELETE', `/v2/pods/${id}`)).status, 204);
    });

    test('registry credentials do not go while a pod uses them', async () => {
      const registry = (
        await ann.call<{ id: string }>('POST', '/v2/registries', {
          name: 'hub',
          username: 'u',
          password: 'p',
        })
      ).body.id;
      const { id } = await createRunningPod(ann, { registry });
      assert.equal((await ann.call('DELETE', `/v2/registries/${registry}`)).status, 400);
      await ann.call('PATCH', `/v2/pods/${id}`, { registry: null });
      assert.equal((await ann.call('DELETE', `/v2/registries/${registry}`)).status, 204);
      await terminate(id);
    });
  });
}
