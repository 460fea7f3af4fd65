import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { SILENT_CLUSTER } from '../../packages/testing/src/kubernetes/silent-cluster.ts';
import { createPod, createRunningPod } from '../../packages/testing/src/pod-client.ts';
import { PROMETHEUS_MISSING, startPrometheus } from '../../packages/testing/src/prometheus-process.ts';
import type { PrometheusProcess } from '../../packages/testing/src/prometheus-process.ts';
import { createQueueEndpoint } from '../../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { startTcpProxy } from '../../packages/testing/src/tcp-proxy.ts';
import type { TcpProxy } from '../../packages/testing/src/tcp-proxy.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../../packages/testing/src/test-database.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import type { TemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { waitFor, waitUntilPasses } from '../../packages/testing/src/wait-for.ts';
import { nodeCommand, queueWorkerSource } from '../../packages/testing/src/worker-sources.ts';

const file = (name: string): string =>
  fileURLToPath(new URL(`../../deploy/monitoring/${name}`, import.meta.url));
const ALERTS = readFileSync(file('alerts.yml'), 'utf8');
const SCRAPES_IN_RANGE = '20s';

/** The same rules with times of seconds in place of minutes: how long a state must last, and ranges. */
const QUICK_ALERTS = ALERTS.replaceAll(/for: \d+m/g, 'for: 1s')
  .replaceAll(/\[\d+m\]/g, `[${SCRAPES_IN_RANGE}]`)
  .replace('berth_job_oldest_wait_seconds) > 600', 'berth_job_oldest_wait_seconds) > 2');

interface Dashboard {
  panels: { title: string; targets?: { expr: string }[] }[];
}

/** The use of GPUs is read every 15 s. */
const SAMPLED_WITHIN_MS = 40_000;
const OWN_WORKER = { image: 'local/shell', cpu: [{ id: 'cpu3c', vcpuCount: 2 }] };

/** Does something that has to wait for the table of jobs, for a third of a second. */
async function whileTableIsLocked(url: string, work: () => Promise<unknown>): Promise<void> {
  const locker = new Client({ connectionString: url });
  await locker.connect();
  try {
    await locker.query('begin');
    await locker.query('lock table jobs in access exclusive mode');
    const done = work();
    await waitFor('it waits for the lock', async () => {
      const { rowCount } = await locker.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and clock_timestamp() - query_start > interval '0.35 s'`,
      );
      return (rowCount ?? 0) > 0;
    });
    await locker.query('commit');
    await done;
  } finally {
    await locker.end();
  }
}

describe('Prometheus', { skip: PROMETHEUS_MISSING }, () => {
  let database: TestDatabase;
  let cable: TcpProxy;
  let server: ServerProcess;
  let client: ApiClient;
  let prometheus: PrometheusProcess;
  let receiver: Server;
  let kubeconfig: TemporaryFolder;
  let podId: string;
  before(async () => {
    database = await createTestDatabase('postgres');
    kubeconfig = createTemporaryFolder('kube', { config: SILENT_CLUSTER });
    cable = await startTcpProxy(database.url);
    server = await startServerProcess(
      { data: database.data, url: cable.url },
      {
        BERTH_RATE_LIMITS: 'off',
        BERTH_GPUS: '1x NVIDIA A40',
        BERTH_LIMITS_INSTALLATION: 'pods=6',
        BERTH_KUBECONFIG: join(kubeconfig.path, 'config'),
        BERTH_WEBHOOKS_ALLOW_PRIVATE: 'true',
        BERTH_WEBHOOKS_ATTEMPTS: '1',
      },
    );
    client = server.client();
    prometheus = await startPrometheus(server.url, QUICK_ALERTS);
    receiver = createServer((_request, response) => response.writeHead(500).end());
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
  });
  after(async () => {
    await prometheus?.stop();
    receiver?.close();
    receiver?.closeAllConnections();
    await server?.kill();
    await cable?.disconnect();
    await database?.drop();
    kubeconfig?.remove();
  });

  const deploy = async (code: string, settings: Record<string, unknown> = {}): Promise<string> => {
    const { status, body, text } = await client.call<{ id: string }>('POST', '/v2/serverless', {
      name: 'deployed',
      type: 'QUEUE',
      ...OWN_WORKER,
      args: JSON.stringify(nodeCommand(code)),
      scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
      workers: { min: 0, max: 1 },
      ...settings,
    });
    assert.equal(status, 201, text);
    return body.id;
  };

  test('promtool accepts the files', () => {
    for (const words of [
      ['check', 'rules', file('alerts.yml')],
      ['check', 'config', file('prometheus.yml')],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', words, { encoding: 'utf8' });
      assert.equal(status, 0, stdout + stderr);
    }
  });

  test('every query of the dashboard gives data once there is traffic', { timeout: 60_000 }, async () => {
    const pod = createRunningPod(client, { ports: ['8000/http'] });
    // More workers are wanted than there are GPUs.
    await deploy(queueWorkerSource('async (n) => n'), {
      cpu: undefined,
      gpu: { pools: ['AMPERE_48'], count: 1 },
      workers: { min: 2, max: 2 },
    });
    const endpoint = await deploy(queueWorkerSource('async (n) => n'));
    const { body } = await client.call<{ status: string }>('POST', `/v2/${endpoint}/runsync?wait=60000`, {
      input: 1,
    });
    assert.equal(body.status, 'COMPLETED');
    const waiting = await createQueueEndpoint(server.url, server.key);
    await waiting.run();
    podId = (await pod).id;
    // Nothing listens there.
    assert.equal((await client.call('GET', `/proxy/${podId}-8000/`)).status, 502);
    await client.call('GET', '/s3/');
    const { panels } = JSON.parse(readFileSync(file('dashboard.json'), 'utf8')) as Dashboard;
    const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
    assert.ok(queries.length > 20);
    for (const { title, expr } of queries)
      await waitFor(
        `data of ${title}: ${expr}`,
        async () => {
          const found = await prometheus.query(
            expr.replaceAll('$__rate_interval', SCRAPES_IN_RANGE).replaceAll('$endpoint', '.*'),
          );
          return found.length > 0;
        },
        SAMPLED_WITHIN_MS,
      );
  });

  test('every alert fires by its fault', { timeout: 150_000 }, async () => {
    const seen = new Set<string>();
    /** Waits until these alerts have fired; brings their faults about again and again. */
    const fires = async (names: readonly string[], fault: () => Promise<unknown>): Promise<void> => {
      await waitUntilPasses(async () => {
        await fault();
        for (const name of await prometheus.firing()) seen.add(name);
        assert.deepEqual(
          names.filter((name) => !seen.has(name)),
          [],
          'alerts that do not fire',
        );
      }, 70_000);
    };
    // Nobody runs the jobs of one endpoint. Workers of another take eight jobs and are never heard of again.
    const stalled = await createQueueEndpoint(server.url, server.key);
    await stalled.run();
    const abandoned = await createQueueEndpoint(server.url, server.key);
    await Promise.all(Array.from({ length: 8 }, () => abandoned.run()));
    for (let taken = 0; taken < 8; taken += 1) await abandoned.worker().take();
    // Workers and pods that end at once.
    await Promise.all(Array.from({ length: 5 }, () => createPod(client, { cmd: ['sh', '-c', 'exit 3'] })));
    await Promise.all(
      Array.from({ length: 6 }, () => deploy('process.exit(3)', { workers: { min: 1, max: 1 } })),
    );
    const failing = await createQueueEndpoint(server.url, server.key);
    const worker = failing.worker();
    const webhook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    await fires(
      [
        'BerthLimitNearlyUsed',
        'BerthJobsWaitLong',
        'BerthQueueStalled',
        'BerthJobsFailing',
        'BerthLeasesLost',
        'BerthWorkersCrash',
        'BerthWorkersThrottled',
        'BerthPodsCrash',
        'BerthDataCenterDown',
        'BerthGatewayErrors',
        'BerthWebhooksFailing',
      ],
      async () => {
        const id = await failing.run({}, { webhook });
        await worker.take();
        await worker.done(id, { error: 'no' });
        await client.call('GET', `/proxy/${podId}-8000/`);
      },
    );
    await fires(['BerthStoreSlow'], () => whileTableIsLocked(database.url, () => stalled.run()));
    await cable.disconnect();
    await fires(['BerthNotReady', 'BerthNoLeader', 'BerthServerErrors'], () =>
      client.call('GET', '/v2/templates'),
    );
    await server.kill();
    await fires(['BerthDown'], async () => undefined);
    assert.deepEqual(
      (await prometheus.alerts()).filter((name) => !seen.has(name)),
      [],
      'an alert without a fault in this test',
    );
  });
});
