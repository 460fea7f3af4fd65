import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  waitForPodStatus,
  getPod,
  createRunningPod,
  SLEEP_COMMAND,
} from '../packages/testing/src/pod-client.ts';
import type { PodView } from '../packages/testing/src/pod-client.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import {
  A100,
  badChanges,
  badCreations,
  badV1Creations,
  FULL,
  image,
  manyPorts,
  RTX,
  variables,
} from './pods/bad-pod-requests.ts';

for (const kind of DATABASES) {
  describe(`bad input about pods, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off', BERTH_DATA_CENTERS: 'LOCAL-1,LOCAL-2' });
    let ann: TestAccount;
    let bob: TestAccount;
    let id = '';
    let untouched = '';
    /** All that anybody can see of ann's things. */
    const everything = async (): Promise<string> => {
      const read = async (path: string): Promise<unknown> =>
        (await ann.call<{ uptime?: number }>('GET', path)).body;
      const shown = JSON.stringify([
        await read('/v1/pods'),
        await read('/v2/pods'),
        await read('/v2/network-volumes'),
        (await listAuditLog(ann)).filter(({ resource }) => resource === 'pod').length,
      ]);
      return shown.replaceAll(
        /"(uptime|util|memoryUtil|uptimeSeconds|uptimeInSeconds|cpuPercent|memoryPercent|gpuUtilPercent|memoryUtilPercent)":\d+/g,
        '',
      );
    };
    before(async () => {
      ann = await fixture.createAccount('ann');
      bob = await fixture.createAccount('bob');
      id = (
        await createRunningPod(ann, {
          gpu: { id: A100 },
          mounts: { persistent: { size: 20, path: '/workspace' } },
        })
      ).id;
      untouched = await everything();
    });

    const refusal = async (client: ApiClient, document: string): Promise<string> =>
      (await client.graphql(document)).body.errors?.[0]?.message ?? '';

    for (const [what, body, status, word] of badCreations) {
      test(`POST /v2/pods with ${what}: ${status}`, async () => {
        const answer = await ann.call('POST', '/v2/pods', body);
        assert.equal(answer.status, status, answer.text);
        assert.match(answer.text, word);
      });
    }
    for (const [what, body, status, word] of badChanges) {
      test(`PATCH /v2/pods/{id} with ${what}: ${status}`, async () => {
        const answer = await ann.call('PATCH', `/v2/pods/${id}`, body);
        assert.equal(answer.status, status, answer.text);
        assert.match(answer.text, word);
      });
    }
    for (const [what, body, status, word] of badV1Creations) {
      test(`POST /v1/pods with ${what}: ${status}`, async () => {
        const answer = await ann.call('POST', '/v1/pods', body);
        assert.equal(answer.status, status, answer.text);
        assert.match(answer.text, word);
      });
    }
    for (const [what, body] of [
      ['a smaller volume', { volumeInGb: 1 }],
      ['a smaller container disk', { containerDiskInGb: 1 }],
      ['a number of GPUs', { gpuCount: 2 }],
      ['11 HTTP ports', { ports: manyPorts }],
    ] as const) {
      test(`PATCH /v1/pods/{id} with ${what}: 400`, async () =>
        assert.equal((await ann.call('PATCH', `/v1/pods/${id}`, body)).status, 400));
    }

    test('in GraphQL each gets an error message', async () => {
      const deploy = (input: string): Promise<string> =>
        refusal(ann, `mutation { podFindAndDeployOnDemand(input: { ${input} }) { id } }`);
      assert.match(await deploy('gpuTypeId: "NVIDIA Abacus", imageName: "local/shell"'), /Abacus/);
      assert.match(await deploy(`gpuTypeId: "${A100}"`), /imageName/);
      assert.match(
        await deploy(`gpuTypeId: "${A100}", imageName: "${'x'.repeat(501)}"`),
        /at most 500 characters/,
      );
      assert.match(await deploy(`gpuTypeId: "${A100}", imageName: "local/shell", gpuCount: 9`), FULL);
      assert.match(await deploy(`gpuTypeId: "${A100}", imageName: "local/shell", ports: "0/tcp"`), /0\/tcp/);
      assert.match(
        await refusal(
          ann,
          'mutation { deployCpuPod(input: { imageName: "local/shell", instanceId: "cpu3c-3-6" }) { id } }',
        ),
        /cpu3c|power of two|vcpu/i,
      );
      assert.match(
        await refusal(
          ann,
          `mutation { podRentInterruptable(input: { imageName: "local/shell", gpuTypeId: "${A100}" }) { id } }`,
        ),
        /bidPerGpu/,
      );
      assert.match(
        await refusal(
          ann,
          `mutation { podRentInterruptable(input: { imageName: "local/shell", gpuTypeId: "${A100}",
            bidPerGpu: -1 }) { id } }`,
        ),
        /bid/,
      );
      assert.match(
        await refusal(ann, `mutation { podEditJob(input: { podId: "${id}", volumeInGb: 1 }) { id } }`),
        /cannot shrink/,
      );
    });

    test('another account sees and moves nothing of it', async () => {
      for (const [method, body] of [
        ['GET', undefined],
        ['PATCH', { name: 'bob' }],
        ['DELETE', undefined],
      ] as const) {
        for (const version of ['v1', 'v2'])
          assert.equal(
            (await bob.call(method, `/${version}/pods/${id}`, body)).status,
            404,
            `${method} ${version}`,
          );
      }
      assert.equal((await bob.call('GET', `/v2/pods/${id}/logs`)).status, 404);
      for (const action of ['start', 'stop', 'restart', 'terminate'])
        assert.equal((await podAction(bob, id, action)).status, 404, action);
      for (const action of ['start', 'stop', 'reset', 'restart', 'update'])
        assert.equal(
          (await bob.call('POST', `/v1/pods/${id}/${action}`, action === 'update' ? {} : undefined)).status,
          404,
          action,
        );
      assert.deepEqual((await bob.graphql(`{ pod(input: { podId: "${id}" }) { id } }`)).body.data, {
        pod: null,
      });
      assert.equal(
        await refusal(bob, `mutation { podTerminate(input: { podId: "${id}" }) }`),
        'pod not found to terminate',
      );
      for (const mutation of ['podStop', 'podResume'])
        assert.match(
          await refusal(bob, `mutation { ${mutation}(input: { podId: "${id}" }) { id } }`),
          /not found/,
        );
    });

    test('a key that may only read is refused', async () => {
      const { key } = (
        await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
          name: 'reader',
          access: 'READ_ONLY',
        })
      ).body;
      const reader = fixture.client(key);
      assert.equal((await reader.call('GET', `/v2/pods/${id}`)).status, 200);
      assert.equal((await createPod(reader)).status, 403);
      assert.deepEqual(
        [
          (await podAction(reader, id, 'stop')).status,
          (await reader.call('DELETE', `/v1/pods/${id}`)).status,
          (await reader.call('PATCH', `/v2/pods/${id}`, { name: 'x' })).status,
        ],
        [403, 403, 403],
      );
      const keys = (
        await ann.call<{ apiKeys: { id: string; name: string }[] }>('GET', '/v2/account/api-keys')
      ).body.apiKeys;
      await ann.call('DELETE', `/v2/account/api-keys/${keys.find(({ name }) => name === 'reader')?.id}`);
    });

    test('after all that, nothing has changed', async () => {
      assert.equal(await everything(), untouched);
    });

    test('what cannot be done in its state: 409 in v2 and 400 in v1, and it stays as it is', async () => {
      for (const action of ['start'])
        assert.deepEqual(
          [
            (await podAction(ann, id, action)).status,
            (await ann.call('POST', `/v1/pods/${id}/${action}`)).status,
          ],
          [409, 400],
        );
      assert.equal((await podAction(ann, id, 'reset')).status, 422);
      assert.equal((await podAction(ann, id, 'explode')).status, 422);
      const stopped = (await createPod(ann, { cmd: ['true'] })).body.id;
      await waitForPodStatus(ann, stopped, 'EXITED');
      for (const action of ['stop', 'restart']) {
        const answer = await podAction(ann, stopped, action);
        assert.equal(answer.status, 409);
        assert.match(answer.text, /is EXITED, so it cannot .*possible now: start, terminate/);
        assert.equal((await ann.call('POST', `/v1/pods/${stopped}/${action}`)).status, 400);
      }
      assert.equal((await ann.call('POST', `/v1/pods/${stopped}/reset`)).status, 400);
      assert.match(
        await refusal(ann, `mutation { podStop(input: { podId: "${stopped}" }) { id } }`),
        /cannot stop/,
      );
      assert.equal((await getPod(ann, stopped)).status, 'EXITED');
      assert.equal((await ann.call('DELETE', `/v2/pods/${stopped}`)).status, 204);
    });

    test('a locked pod is neither stopped, restarted, reset nor terminated, in any interface', async () => {
      assert.equal((await ann.call('PATCH', `/v2/pods/${id}`, { locked: true })).status, 200);
      assert.deepEqual((await getPod(ann, id)).actions, []);
      for (const action of ['stop', 'restart', 'terminate']) {
        const answer = await podAction(ann, id, action);
        assert.deepEqual([answer.status, /locked.*unlock it first/.test(answer.text)], [409, true], action);
      }
      assert.equal((await ann.call('DELETE', `/v2/pods/${id}`)).status, 409);
      for (const action of ['stop', 'restart', 'reset'])
        assert.equal((await ann.call('POST', `/v1/pods/${id}/${action}`)).status, 400, action);
      assert.equal((await ann.call('DELETE', `/v1/pods/${id}`)).status, 400);
      assert.equal((await ann.call('PATCH', `/v2/pods/${id}`, { image: 'local/shell:other' })).status, 409);
      for (const mutation of [
        'podStop(input: { podId: "ID" }) { id }',
        'podTerminate(input: { podId: "ID" })',
        'podEditJob(input: { podId: "ID", imageName: "local/other" }) { id }',
      ])
        assert.match(await refusal(ann, `mutation { ${mutation.replace('ID', id)} }`), /locked/);
      assert.equal((await getPod(ann, id)).status, 'RUNNING');
      assert.equal((await ann.call('PATCH', `/v2/pods/${id}`, { locked: false })).status, 200);
    });

    test('a start without capacity is refused in the known words, and the pod stays stopped', async () => {
      const first = await createRunningPod(ann, { gpu: { id: RTX, count: 2 } });
      await podAction(ann, first.id, 'stop');
      await waitForPodStatus(ann, first.id, 'EXITED');
      const occupant = await createRunningPod(ann, { gpu: { id: RTX, count: 2 } });
      const v2 = await podAction(ann, first.id, 'start');
      assert.deepEqual([v2.status, FULL.test(v2.text)], [400, true]);
      assert.match(v2.text, /0 of 2 NVIDIA GeForce RTX 4090 are free, 2 requested/);
      const v1 = await ann.call('POST', `/v1/pods/${first.id}/start`);
      assert.deepEqual([v1.status, FULL.test(v1.text)], [400, true]);
      assert.match(
        await refusal(ann, `mutation { podResume(input: { podId: "${first.id}", gpuCount: 1 }) { id } }`),
        FULL,
      );
      assert.deepEqual(
        [(await getPod(ann, first.id)).status, (await getPod(ann, first.id)).gpu?.count],
        ['EXITED', 2],
      );
      for (const one of [first, occupant]) await ann.call('DELETE', `/v2/pods/${one.id}`);
    });

    test('a network volume of another data center or account is refused', async () => {
      const volume = (
        await ann.call<{ id: string }>('POST', '/v2/network-volumes', {
          name: 'v',
          size: 10,
          dataCenter: 'LOCAL-2',
        })
      ).body.id;
      const mounts = { network: [{ volumeId: volume, path: '/workspace' }] };
      const elsewhere = await createPod(ann, { mounts, dataCenterIds: ['LOCAL-1'] });
      assert.deepEqual([elsewhere.status, /is in LOCAL-2/.test(elsewhere.text)], [400, true], elsewhere.text);
      assert.equal(
        (
          await ann.call('POST', '/v1/pods', {
            imageName: image,
            computeType: 'CPU',
            dockerStartCmd: SLEEP_COMMAND,
            networkVolumeId: volume,
            dataCenterIds: ['LOCAL-1'],
          })
        ).status,
        400,
      );
      assert.equal((await createPod(bob, { mounts })).status, 400);
      assert.equal((await ann.call<{ pods: PodView[] }>('GET', '/v2/pods')).body.pods.length, 1);
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${volume}`)).status, 204);
    });

    test('50 variables are accepted, and what is put in does not count', async () => {
      const { status, body } = await createPod(ann, {
        env: variables(50),
        startJupyter: true,
        cmd: ['true'],
      });
      assert.equal(status, 201);
      await ann.call('DELETE', `/v2/pods/${body.id}`);
    });
  });
}
