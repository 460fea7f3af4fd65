import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  ContainerStatus,
  PodObject,
} from '../packages/cloud/src/engines/kubernetes/kubernetes-objects.ts';
import {
  kubernetesEngineFixture,
  type KubernetesEngineFixture,
} from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { withKubernetes } from '../packages/testing/src/kubernetes/with-kubernetes.ts';
import { createPod, podAction, podLog, waitForPodStatus } from '../packages/testing/src/pod-client.ts';
import { serverlessFixture, waitForReadyWorkers } from '../packages/testing/src/serverless-fixture.ts';
import { openTerminal } from '../packages/testing/src/terminal-client.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { queueWorkerSource } from '../packages/testing/src/worker-sources.ts';

/** The clock of the server may approach the machine's. */
const CLOCK_SLACK_MS = 100;
const WEB_SERVER = [
  'node',
  '-e',
  "require('node:http').createServer((request, response) => response.end(`${process.env.GREETING} at " +
    '${request.url}`)).listen(8080)',
];

await withKubernetes((cluster) => {
  describe('a server with a Kubernetes cluster', () => {
    let engine: KubernetesEngineFixture;
    const fixture = serverlessFixture(
      async () => (engine = await kubernetesEngineFixture(cluster, { scheduleTimeout: 5 })),
    );

    test('jobs run on pods, also after the server was killed, and nothing of them stays', async () => {
      const endpoint = await fixture.deploy(
        'first',
        queueWorkerSource('async ({ ms = 0, ...rest }) => { await pause(ms); return rest; }'),
        {
          workers: { min: 1, max: 1 },
        },
      );
      const job = await fixture.runSync(endpoint, { hello: 'world' });
      assert.deepEqual([job.status, job.output], ['COMPLETED', { hello: 'world' }], job.error);
      const before = await fixture.engine.instancesOf(endpoint);
      assert.equal(before.size, 1);
      const slow = await fixture.run(endpoint, { ms: 3000, after: 'kill' });
      await waitFor(
        'the job runs',
        async () => (await fixture.status(endpoint, slow)).status === 'IN_PROGRESS',
      );
      await fixture.killAndRestart();
      assert.deepEqual((await fixture.waitForEnd(endpoint, slow)).output, { after: 'kill' });
      assert.deepEqual(await fixture.engine.instancesOf(endpoint), before, 'the same pod goes on');
      const [worker] = await waitForReadyWorkers(fixture, endpoint, 1);
      const logs = await fixture.client.call(
        'GET',
        `/v2/serverless/${endpoint}/workers/${worker}/logs?follow=false`,
      );
      assert.match(logs.text, /Starting localhost\/berth-test/);
      const { text: metrics } = await fixture.client.call('GET', '/metrics');
      assert.match(metrics, /^berth_kubernetes_cache_age_seconds\{data_center="K8S-1"\} \d/m);
      assert.match(metrics, /^berth_kubernetes_requests_total\{data_center="K8S-1"\} [1-9]/m);
      await fixture.remove(endpoint);
      await waitFor(
        'its pods and secrets are gone',
        async () => (await engine.names('pods')).length + (await engine.names('secrets')).length === 0,
      );
    });

    test('a pod is reached through the gateway, runs commands, and leaves nothing', async () => {
      const { client } = fixture;
      const { body: pod, text } = await createPod(client, {
        image: fixture.engine.image,
        cmd: WEB_SERVER,
        env: { GREETING: 'hello' },
        ports: ['8080/http'],
      });
      assert.equal(pod.dataCenterId, 'K8S-1', text);
      await waitForPodStatus(client, pod.id, 'RUNNING');
      const answer = await waitFor('the port answers', async () => {
        const { status, text: body } = await client.call('GET', `/proxy/${pod.id}-8080/some/path`);
        return status === 200 && body;
      });
      assert.equal(answer, 'hello at /some/path');
      const query = ['sh', '-c', 'echo $GREETING from inside; exit 3'].map(
        (word) => `cmd=${encodeURIComponent(word)}`,
      );
      const terminal = await openTerminal(
        `${fixture.server.url.replace(/^http/, 'ws')}/v2/pods/${pod.id}/terminal?${query.join('&')}`,
        { authorization: `Bearer ${fixture.server.key}` },
      );
      assert.equal((await terminal.ended).exit?.exitCode, 3);
      assert.equal(terminal.stdout().toString(), 'hello from inside\n');
      await podAction(client, pod.id, 'stop');
      await waitForPodStatus(client, pod.id, 'EXITED');
      assert.ok((await podLog(client, pod.id)).some(({ line }) => /Asked to end/.test(line)));
      await client.call('DELETE', `/v2/pods/${pod.id}`);
      await waitFor(
        'nothing is left',
        async () => (await engine.names('pods')).length + (await engine.names('secrets')).length === 0,
      );
    });

    test("usage is billed by the container's times, also if it ended while the server was away", async () => {
      const containers = async (): Promise<ContainerStatus[]> =>
        (
          await engine.cluster.get<{ items: PodObject[] }>(`/api/v1/namespaces/${engine.namespace}/pods`)
        ).items.flatMap(({ status }) => status?.containerStatuses ?? []);
      const endpoint = await fixture.deploy('billed', queueWorkerSource('async () => 1'), {
        workers: { min: 1, max: 1 },
      });
      await waitForReadyWorkers(fixture, endpoint, 1);
      // It may connect before its engine has told that it runs.
      const { scheduledAt, startedAt } = await waitFor('its start is recorded', async () => {
        const { body } = await fixture.client.call<{
          workers: { phases: { scheduledAt: string; startedAt: string | null } }[];
        }>('GET', `/v2/serverless/${endpoint}/workers`);
        const { phases } = body.workers[0] ?? {};
        return (
          phases !== undefined && phases.startedAt !== null && { ...phases, startedAt: phases.startedAt }
        );
      });
      const [container] = await containers();
      // The kubelet cuts off fractions of a second.
      const expected = Math.max(
        Date.parse(container?.state?.running?.startedAt ?? ''),
        Date.parse(scheduledAt),
      );
      assert.ok(Math.abs(Date.parse(startedAt) - expected) < CLOCK_SLACK_MS, `${startedAt}, ${scheduledAt}`);
      await fixture.remove(endpoint);

      const { body: pod, text } = await createPod(fixture.client, {
        image: fixture.engine.image,
        cmd: ['sh', '-c', 'sleep 2'],
      });
      assert.ok(pod.id, text);
      await waitForPodStatus(fixture.client, pod.id, 'RUNNING');
      await fixture.server.kill();
      const ended = await waitFor(
        'the container has ended',
        async () =>
          (await containers()).find(({ state }) => state?.terminated !== undefined)?.state?.terminated,
      );
      await fixture.killAndRestart();
      await waitForPodStatus(fixture.client, pod.id, 'EXITED');
      const billed = await fixture.client.call<{ timeBilledMs: number }[]>(
        'GET',
        `/v1/billing/pods?grouping=podId&bucketSize=year&podId=${pod.id}`,
      );
      const ran = Date.parse(ended.finishedAt ?? '') - Date.parse(ended.startedAt ?? '');
      assert.ok(
        Math.abs((billed.body[0]?.timeBilledMs ?? 0) - ran) < CLOCK_SLACK_MS,
        `${ran}: ${billed.text}`,
      );
      await fixture.client.call('DELETE', `/v2/pods/${pod.id}`);
    });

    test('a job whose image cannot be pulled waits, and is told why', async () => {
      const endpoint = await fixture.deploy('large', queueWorkerSource('async () => 1'), {
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        image: 'localhost:1/no/such-image:1',
      });
      const job = await fixture.run(endpoint, {});
      await fixture.waitForReason(endpoint, job, /could not be pulled|such-image/);
      await fixture.remove(endpoint);
    });

    test('workers scale with the queue', async () => {
      const endpoint = await fixture.deploy(
        'scaled',
        queueWorkerSource('async ({ ms }) => { await pause(ms); return 1; }'),
        {
          workers: { min: 0, max: 3 },
        },
      );
      const jobs = await Promise.all(Array.from({ length: 3 }, () => fixture.run(endpoint, { ms: 2000 })));
      await waitForReadyWorkers(fixture, endpoint, 3);
      for (const job of jobs) assert.equal((await fixture.waitForEnd(endpoint, job)).status, 'COMPLETED');
      await fixture.remove(endpoint);
    });
  });
});
