import assert from 'node:assert/strict';
import { afterEach, before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  SMALL_CPU,
  createPod,
  waitForPodStatus,
  podLog,
  getPod,
  processesOfInstance,
  createRunningPod,
  SLEEP_COMMAND,
} from '../packages/testing/src/pod-client.ts';
import type { PodView, V1Pod } from '../packages/testing/src/pod-client.ts';
import { PodFixture } from '../packages/testing/src/pod-test-fixture.ts';
import { listAuditLog } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const RTX = 'NVIDIA GeForce RTX 4090';
const A100 = 'NVIDIA A100 80GB PCIe';

for (const kind of DATABASES) {
  describe(`pods in every interface, on ${kind}`, () => {
    const pods = new PodFixture(kind);
    const { ask, refusal, terminate, writes, writesTimes } = pods;
    let ann: TestAccount;
    let bob: TestAccount;
    before(async () => {
      ({ ann, bob } = await pods.createAccounts());
    });
    afterEach(pods.deletePods);

    test('a life in REST v2: made, running, restarted, stopped, started, changed, terminated', async () => {
      const made = await createPod(ann, {
        name: 'first',
        env: { GREETING: 'hello' },
        cmd: ['sh', '-c', 'echo "$GREETING from $RUNPOD_POD_ID"; exec sleep 1000'],
        ports: ['8000/http', '22/tcp'],
      });
      assert.equal(made.status, 201, made.text);
      assert.ok(['PROVISIONING', 'STARTING', 'RUNNING'].includes(made.body.status));
      const { id } = made.body;
      const running = await waitForPodStatus(ann, id, 'RUNNING');
      assert.deepEqual(running.actions, ['stop', 'restart', 'terminate']);
      assert.deepEqual(
        [running.cpu, running.gpu, running.dataCenterId, running.template],
        [{ ...SMALL_CPU, memory: 4 }, undefined, 'LOCAL-1', null],
      );
      assert.ok(
        running.runtime !== null && running.runtime.cpu.util >= 0 && running.runtime.ports.length === 2,
      );
      assert.equal(await writes(id, 'hello from'), `hello from ${id}`);

      const restarted = await podAction(ann, id, 'restart');
      assert.deepEqual(
        [restarted.status, restarted.body.status, restarted.body.actions],
        [200, 'STARTING', ['stop', 'terminate']],
      );
      await waitForPodStatus(ann, id, 'RUNNING');
      await writesTimes(id, `hello from ${id}`, 2);
      assert.equal(processesOfInstance(id).length, 1);

      const stopped = await podAction(ann, id, 'stop');
      assert.deepEqual(
        [stopped.status, stopped.body.status, stopped.body.actions, stopped.body.runtime, stopped.body.cost],
        [200, 'EXITED', ['start', 'terminate'], null, 0],
      );
      assert.deepEqual(processesOfInstance(id), []);
      for (const wrong of ['stop', 'restart']) assert.equal((await podAction(ann, id, wrong)).status, 409);
      assert.equal((await podAction(ann, id, 'reset')).status, 422);

      const changed = await ann.call<PodView>('PATCH', `/v2/pods/${id}`, {
        name: 'renamed',
        env: { GREETING: 'goodbye' },
        disk: 30,
      });
      assert.deepEqual(
        [changed.status, changed.body.status, changed.body.name, changed.body.env, changed.body.disk],
        [200, 'EXITED', 'renamed', { GREETING: 'goodbye' }, 30],
      );
      const started = await podAction(ann, id, 'start');
      assert.deepEqual([started.status, started.body.status], [200, 'PROVISIONING']);
      await waitForPodStatus(ann, id, 'RUNNING');
      await writes(id, `goodbye from ${id}`);
      assert.equal((await podAction(ann, id, 'start')).status, 409);

      const edited = await ann.call<PodView>('PATCH', `/v2/pods/${id}`, { env: { GREETING: 'again' } });
      assert.equal(edited.body.status, 'STARTING');
      await writes(id, `again from ${id}`);
      const { startedAt } = await waitForPodStatus(ann, id, 'RUNNING');
      await ann.call('PATCH', `/v2/pods/${id}`, { name: 'only a name' });
      assert.deepEqual(
        [(await getPod(ann, id)).startedAt, (await getPod(ann, id)).status],
        [startedAt, 'RUNNING'],
      );

      const gone = await podAction(ann, id, 'terminate');
      assert.deepEqual([gone.status, gone.text], [204, '']);
      assert.equal((await ann.call('GET', `/v2/pods/${id}`)).status, 404);
      assert.equal((await ann.call('DELETE', `/v2/pods/${id}`)).status, 404);
      assert.deepEqual(processesOfInstance(id), []);
      assert.ok((await podLog(ann, id)).length > 0, 'its log stays readable');
      const actions = (await listAuditLog(ann))
        .filter((entry) => entry['resourceId'] === id)
        .map((entry) => entry['action']);
      assert.deepEqual(actions, [
        'delete',
        'update',
        'update',
        'start',
        'update',
        'stop',
        'restart',
        'create',
      ]);
    });

    test('a life in REST v1, with its defaults, and every filter of the list', async () => {
      const made = await ann.call<V1Pod>('POST', '/v1/pods', {
        imageName: 'local/shell',
        dockerStartCmd: SLEEP_COMMAND,
        gpuTypeIds: [A100],
      });
      assert.equal(made.status, 201, made.text);
      const { id } = made.body;
      assert.partialDeepStrictEqual(made.body, {
        name: 'my pod',
        desiredStatus: 'RUNNING',
        image: 'local/shell',
        imageName: 'local/shell',
        containerDiskInGb: 50,
        volumeInGb: 20,
        volumeMountPath: '/workspace',
        ports: ['8888/http', '22/tcp'],
        gpu: { id: A100, count: 1 },
        interruptible: false,
        locked: false,
      });
      assert.deepEqual(
        ['templateId', 'networkVolumeId', 'containerRegistryAuthId'].filter((field) => field in made.body),
        [],
      );
      const cpu = (
        await ann.call<V1Pod>('POST', '/v1/pods', {
          name: 'cpu',
          imageName: 'local/shell',
          dockerStartCmd: SLEEP_COMMAND,
          computeType: 'CPU',
          cpuFlavorIds: ['cpu3g'],
          vcpuCount: 2,
          dataCenterIds: ['LOCAL-2'],
        })
      ).body;
      assert.partialDeepStrictEqual(cpu, {
        cpuFlavorId: 'cpu3g',
        vcpuCount: 2,
        memoryInGb: 8,
        gpuCount: 0,
        volumeInGb: 0,
      });
      await waitForPodStatus(ann, id, 'RUNNING');
      await waitForPodStatus(ann, cpu.id, 'RUNNING');
      const listed = async (query: string): Promise<string[]> =>
        (await ann.call<V1Pod[]>('GET', `/v1/pods?${query}`)).body.map((found) => found.id).sort();
      const [both, one, other] = [[id, cpu.id].sort(), [id], [cpu.id]];
      assert.deepEqual(await listed(''), both);
      for (const query of [
        'computeType=GPU',
        `gpuTypeId=x&gpuTypeId=${encodeURIComponent(A100)}`,
        'name=my%20pod',
        `id=${id}`,
        'dataCenterId=LOCAL-1',
      ])
        assert.deepEqual(await listed(query), one, query);
      for (const query of [
        'computeType=CPU',
        'cpuFlavorId=cpu3g&cpuFlavorId=cpu3c',
        'name=cpu',
        'dataCenterId=LOCAL-2&desiredStatus=RUNNING',
      ])
        assert.deepEqual(await listed(query), other, query);
      for (const query of [
        'imageName=other',
        'desiredStatus=EXITED',
        'networkVolumeId=x',
        'templateId=x',
        'endpointId=x',
        'name=cpu&computeType=GPU',
      ])
        assert.deepEqual(await listed(query), [], query);
      assert.equal((await ann.call('GET', '/v1/pods?computeType=TPU')).status, 400);
      const whole = (
        await ann.call<V1Pod>(
          'GET',
          `/v1/pods/${id}?includeMachine=true&includeNetworkVolume=true&includeTemplate=true&includeSavingsPlans=true&includeWorkers=true`,
        )
      ).body;
      assert.partialDeepStrictEqual(whole, {
        machine: { gpuTypeId: A100, dataCenterId: 'LOCAL-1' },
        savingsPlans: [],
      });

      for (const method of ['PATCH', 'POST']) {
        const path = method === 'POST' ? `/v1/pods/${id}/update` : `/v1/pods/${id}`;
        const updated = await ann.call<V1Pod>(method, path, { env: { BY: method }, volumeInGb: 30 });
        assert.deepEqual(
          [updated.status, updated.body.env, updated.body.volumeInGb],
          [200, { BY: method }, 30],
        );
        await waitForPodStatus(ann, id, 'RUNNING');
      }
      const step = async (name: string): Promise<V1Pod> => {
        const { status, body, text } = await ann.call<V1Pod>('POST', `/v1/pods/${id}/${name}`);
        assert.equal(status, 200, text);
        return body;
      };
      for (const name of ['restart', 'reset']) {
        const before = (await getPod(ann, id)).startedAt;
        assert.equal((await step(name)).desiredStatus, 'RUNNING');
        await waitFor(
          `it runs anew after ${name}`,
          async () => (await waitForPodStatus(ann, id, 'RUNNING')).startedAt !== before,
        );
      }
      assert.equal((await step('stop')).desiredStatus, 'EXITED');
      for (const wrong of ['stop', 'reset', 'restart'])
        assert.equal((await ann.call('POST', `/v1/pods/${id}/${wrong}`)).status, 400);
      assert.equal((await step('start')).desiredStatus, 'RUNNING');
      await waitForPodStatus(ann, id, 'RUNNING');
      assert.equal((await ann.call('POST', `/v1/pods/${id}/start`)).status, 400);
      for (const found of [id, cpu.id])
        assert.deepEqual(
          [
            (await ann.call('DELETE', `/v1/pods/${found}`)).status,
            (await ann.call('GET', `/v1/pods/${found}`)).status,
          ],
          [204, 404],
        );
      assert.deepEqual(await listed(''), []);
    });

    test("of another account block a template's deletion, and are listed without it once it is private", async () => {
      const { id: templateId } = (
        await ann.call<{ id: string }>('POST', '/v2/templates', {
          name: 'shared',
          image: 'local/shell',
          public: true,
          cmd: SLEEP_COMMAND,
        })
      ).body;
      const made = await bob.call<V1Pod>('POST', '/v1/pods', {
        name: 'guest',
        templateId,
        computeType: 'CPU',
      });
      assert.equal(made.status, 201, made.text);
      const { id } = made.body;
      const shown = async (): Promise<unknown[]> => {
        const list = await bob.call<V1Pod[]>('GET', '/v1/pods?includeTemplate=true');
        const one = await bob.call<V1Pod>('GET', `/v1/pods/${id}?includeTemplate=true`);
        assert.deepEqual([list.status, one.status, list.body.length], [200, 200, 1], list.text);
        return [
          one.body.templateId,
          one.body['template'] !== undefined,
          list.body[0]?.['template'] !== undefined,
        ];
      };
      assert.deepEqual(await shown(), [templateId, true, true]);
      for (const version of ['v1', 'v2']) {
        const { status, text } = await ann.call('DELETE', `/${version}/templates/${templateId}`);
        assert.equal(status, 400);
        assert.match(text, /a pod of another account was made from this template/);
        assert.ok(!text.includes(id) && !text.includes('guest') && !text.includes(bob.id));
      }
      await ann.call('PATCH', `/v2/templates/${templateId}`, { public: false });
      assert.deepEqual(await shown(), [templateId, false, false]);
      const own = (await ann.call<V1Pod>('POST', '/v1/pods', { name: 'own', templateId, computeType: 'CPU' }))
        .body.id;
      assert.match(
        (await ann.call('DELETE', `/v2/templates/${templateId}`)).text,
        new RegExp(`\\(${own}\\) was made from this template`),
      );
      await terminate(own);
      assert.equal((await bob.call('DELETE', `/v1/pods/${id}`)).status, 204);
      assert.equal((await ann.call('DELETE', `/v2/templates/${templateId}`)).status, 204);
    });

    test('a life in GraphQL: on demand, on a CPU, interruptible, stopped, resumed, edited, terminated', async () => {
      const fields =
        'id name desiredStatus imageName env ports gpuCount podType costPerHr lastStatusChange ' +
        'machineId machine { podHostId gpuTypeId gpuDisplayName location } runtime { uptimeInSeconds ' +
        'ports { privatePort isIpPublic } gpus { gpuUtilPercent } container { cpuPercent memoryPercent ' +
        '} }';
      type Seen = {
        id: string;
        desiredStatus: string;
        runtime: { ports: object[]; gpus: object[] } | null;
        env: string[];
        podType: string;
      };
      const dockerArgs = JSON.stringify({ entrypoint: [], cmd: SLEEP_COMMAND });
      const deploy = async (mutation: string, input: object): Promise<Seen> => {
        const type = `${mutation.charAt(0).toUpperCase()}${mutation.slice(1)}Input`;
        return Object.values(
          await ask<Record<string, Seen>>(
            `mutation ($input: ${type}) { ${mutation}(input: $input) { ${fields} } }`,
            { input: { imageName: 'local/shell', dockerArgs, ...input } },
          ),
        )[0] as Seen;
      };
      const onDemand = await deploy('podFindAndDeployOnDemand', {
        name: 'gpu',
        cloudType: 'ALL',
        gpuTypeId: RTX,
        gpuCount: 1,
        ports: '8888/http,22/tcp',
        env: [{ key: 'A', value: '1' }],
        dataCenterId: null,
        networkVolumeId: '',
      });
      assert.partialDeepStrictEqual(onDemand, {
        name: 'gpu',
        desiredStatus: 'RUNNING',
        env: ['A=1'],
        ports: '8888/http,22/tcp',
        gpuCount: 1,
        podType: 'RESERVED',
        machine: { gpuTypeId: RTX },
      });
      const cpu = await deploy('deployCpuPod', { instanceId: 'cpu3c-2-4', name: 'cpu' });
      const spot = await deploy('podRentInterruptable', { gpuTypeId: RTX, bidPerGpu: 0.3, name: 'spot' });
      assert.equal(spot.podType, 'INTERRUPTABLE');
      for (const { id } of [onDemand, cpu, spot]) await waitForPodStatus(ann, id, 'RUNNING');
      const { myself } = await ask<{ myself: { pods: Seen[] } }>(`{ myself { pods { ${fields} } } }`);
      assert.deepEqual(
        myself.pods.map(({ id }) => id),
        [spot.id, cpu.id, onDemand.id],
      );
      assert.equal(myself.pods[2]?.runtime?.gpus.length, 1);
      assert.deepEqual(myself.pods[2]?.runtime?.ports, [{ privatePort: 8888, isIpPublic: false }]);

      const { podStop } = await ask<{ podStop: Seen }>(
        'mutation ($input: PodStopInput) { podStop(input: $input) { id desiredStatus } }',
        { input: { podId: spot.id } },
      );
      assert.deepEqual(podStop, { id: spot.id, desiredStatus: 'EXITED' });
      const { podBidResume } = await ask<{ podBidResume: Seen }>(
        `mutation { podBidResume(input: { podId: "${spot.id}", bidPerGpu: 0.5, gpuCount: 1 }) { id ` +
          'desiredStatus costPerHr } }',
      );
      assert.deepEqual(podBidResume, { id: spot.id, desiredStatus: 'RUNNING', costPerHr: 0.5 });
      assert.match(
        await refusal(`mutation { podBidResume(input: { podId: "${onDemand.id}", bidPerGpu: 1 }) { id } }`),
        /not interruptible|cannot start/,
      );
      await ask(`mutation { podStop(input: { podId: "${onDemand.id}" }) { id } }`);
      const { podResume } = await ask<{ podResume: Seen }>(
        `mutation { podResume(input: { podId: "${onDemand.id}", gpuCount: 1 }) { id desiredStatus } }`,
      );
      assert.equal(podResume.desiredStatus, 'RUNNING');
      await waitForPodStatus(ann, onDemand.id, 'RUNNING');
      const { podEditJob } = await ask<{ podEditJob: Seen }>(
        `mutation { podEditJob(input: { podId: "${onDemand.id}", env: [{ key: "B", value: "2" }], ` +
          'containerRegistryAuthId: "" }) { id env } }',
      );
      assert.deepEqual(podEditJob, { id: onDemand.id, env: ['B=2'] });
      await waitForPodStatus(ann, onDemand.id, 'RUNNING');
      const { pod: one } = await ask<{ pod: Seen }>(
        `{ pod(input: { podId: "${onDemand.id}" }) { id env runtime { uptimeInSeconds } } }`,
      );
      assert.ok(one.runtime !== null);
      for (const { id } of [onDemand, cpu, spot])
        assert.deepEqual(await ask(`mutation { podTerminate(input: { podId: "${id}" }) }`), {
          podTerminate: null,
        });
      assert.equal(
        await refusal(`mutation { podTerminate(input: { podId: "${spot.id}" }) }`),
        'pod not found to terminate',
      );
      assert.deepEqual(await ask(`{ pod(input: { podId: "${spot.id}" }) { id } }`), { pod: null });
    });

    test('a pod is the same in every interface', async () => {
      const { id } = await createRunningPod(ann, {
        name: 'same',
        env: { A: '1' },
        ports: ['80/http'],
        disk: 7,
        gpu: { id: A100, count: 2 },
        mounts: { persistent: { size: 11, path: '/data' } },
      });
      assert.partialDeepStrictEqual((await ann.call('GET', `/v1/pods/${id}`)).body, {
        id,
        name: 'same',
        desiredStatus: 'RUNNING',
        env: { A: '1' },
        ports: ['80/http'],
        containerDiskInGb: 7,
        volumeInGb: 11,
        volumeMountPath: '/data',
        gpuCount: 2,
        dockerStartCmd: SLEEP_COMMAND,
      });
      const { pod: seen } = await ask<{ pod: object }>(
        `{ pod(input: { podId: "${id}" }) { id name desiredStatus env ports containerDiskInGb ` +
          'volumeInGb volumeMountPath gpuCount } }',
      );
      assert.deepEqual(seen, {
        id,
        name: 'same',
        desiredStatus: 'RUNNING',
        env: ['A=1'],
        ports: '80/http',
        containerDiskInGb: 7,
        volumeInGb: 11,
        volumeMountPath: '/data',
        gpuCount: 2,
      });
      await terminate(id);
    });
  });
}
