import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SILENT_CLUSTER } from '../../packages/testing/src/kubernetes/silent-cluster.ts';
import { createRunningPod } from '../../packages/testing/src/pod-client.ts';
import { createQueueEndpoint } from '../../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../../packages/testing/src/server-fixture.ts';
import { DATABASES } from '../../packages/testing/src/test-database.ts';
import { createResource, queueEndpoint } from '../../packages/testing/src/create-resource.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { waitFor, waitUntilPasses } from '../../packages/testing/src/wait-for.ts';

const PAGE = readFileSync(fileURLToPath(new URL('../../docs/monitoring.md', import.meta.url)), 'utf8');
/** What has its families only with a cluster, with a receiver of traces, or on one of the databases. */
const CONDITIONAL = new Set([
  'berth_kubernetes_cache_age_seconds',
  'berth_kubernetes_requests_total',
  'berth_trace_spans_total',
  'berth_store_sync_seconds',
]);
/** What a server tells after a job, a pod and a request of each kind. */
const WITH_DATA = [
  ['berth_jobs_queued', ['endpoint']],
  ['berth_jobs_running', ['endpoint']],
  ['berth_job_oldest_wait_seconds', ['endpoint']],
  ['berth_jobs_submitted_total', ['endpoint']],
  ['berth_jobs_ended_total', ['endpoint', 'status']],
  ['berth_job_retries_total', ['endpoint']],
  ['berth_job_wait_seconds', ['endpoint']],
  ['berth_job_run_seconds', ['endpoint']],
  ['berth_workers', ['state', 'data_center']],
  ['berth_pods', ['state', 'data_center']],
  ['berth_worker_starts_total', ['data_center']],
  ['berth_pod_starts_total', ['data_center']],
  ['berth_cold_start_seconds', ['phase']],
  ['berth_data_center_up', ['data_center']],
  ['berth_data_center_cpu_threads', ['data_center']],
  ['berth_data_center_memory_bytes', ['data_center']],
  ['berth_data_center_gpus', ['data_center', 'gpu', 'state']],
  ['berth_http_request_seconds', ['method', 'route', 'status']],
  ['berth_gateway_request_seconds', ['target', 'status']],
  ['berth_s3_request_seconds', ['method', 'status']],
  ['berth_store_commit_seconds', []],
  ['berth_store_commit_operations', []],
  ['berth_quota_used_ratio', ['account', 'limit']],
  ['berth_quota_used', ['account', 'limit']],
  ['berth_quota_limit', ['account', 'limit']],
  ['berth_ready', []],
  ['berth_leader', []],
  ['berth_worker_shards', []],
] as const;
const ENDPOINTS = 60;
const MAX_ENDPOINT_LABELS = 51;

interface Sample {
  name: string;
  labels: string[];
  text: string;
}

/** The families of the page with their labels. */
function documented(): Map<string, string[]> {
  const families = new Map<string, string[]>();
  const [, table = ''] = PAGE.split('| family | labels | meaning |');
  for (const row of table.split('\n').filter((line) => line.startsWith('| `berth_'))) {
    const [, names = '', labels = ''] = row.split('|');
    for (const [name] of names.matchAll(/berth_\w+/g))
      families.set(
        name,
        [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label),
      );
  }
  return families;
}

function samplesOf(text: string): Sample[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('berth_'))
    .map((line) => {
      const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
      const names = [...labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map(([, label = '']) => label);
      return { name, labels: names.filter((label) => label !== 'le'), text: line };
    });
}

const familyOf = (name: string, families: ReadonlyMap<string, unknown>): string =>
  families.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '');

for (const kind of DATABASES)
  describe(`the families of /metrics, on ${kind}`, () => {
    const fixture = serverFixture(kind, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_GPUS: '1x NVIDIA A40',
      BERTH_LIMITS_ACCOUNT: 'pods=4',
      BERTH_LIMITS_INSTALLATION: 'pods=6',
    });
    const read = async (): Promise<string> => (await fixture.server.client().call('GET', '/metrics')).text;

    before(async () => {
      const { operator } = fixture;
      const echo = await createResource(operator, '/v2/serverless', queueEndpoint('echo', 'local/echo'));
      const { body } = await operator.call<{ status: string }>('POST', `/v2/${echo}/runsync?wait=60000`, {
        input: 1,
      });
      assert.equal(body.status, 'COMPLETED');
      const { id: podId } = await createRunningPod(fixture.server.client(), { ports: ['8000/http'] });
      // Nothing listens there.
      await fixture.server.client().call('GET', `/proxy/${podId}-8000/`);
      await fixture.server.client().call('GET', '/s3/');
      const waiting = await createQueueEndpoint(fixture.server.url, fixture.server.key);
      await waiting.run();
      const worker = await createQueueEndpoint(fixture.server.url, fixture.server.key);
      const id = await worker.run();
      await worker.worker().take();
      await worker.worker().done(id, { error: 'no' });
      await operator.call('POST', `/v2/${worker.id}/retry/${id}`);
    });

    test('are those of the page, with its labels', async () => {
      const families = documented();
      assert.ok(families.size > 40, String(families.size));
      await waitUntilPasses(async () => {
        const text = await read();
        const told = new Set([...text.matchAll(/^# TYPE (berth_\w+) /gm)].map(([, name = '']) => name));
        assert.deepEqual(
          {
            missing: [...families.keys()].filter((name) => !told.has(name) && !CONDITIONAL.has(name)),
            undocumented: [...told].filter((name) => !families.has(name)),
          },
          { missing: [], undocumented: [] },
        );
        for (const { name, labels, text: line } of samplesOf(text))
          assert.deepEqual(
            labels.toSorted(),
            families.get(familyOf(name, families))?.toSorted(),
            `${line} has other labels than the page says`,
          );
      }, 40_000);
    });

    test('each has data, with its labels, once there was something to tell', async () => {
      await waitUntilPasses(async () => {
        const families = documented();
        const samples = samplesOf(await read());
        for (const [family, labels] of WITH_DATA) {
          const of = samples.filter(({ name }) => familyOf(name, families) === family);
          assert.ok(of.length > 0, `no data of ${family}`);
          assert.deepEqual(of[0]?.labels.toSorted(), labels.toSorted(), family);
        }
      }, 60_000);
    });

    test('however many endpoints there are, the labels are bounded', async () => {
      for (let count = 0; count < ENDPOINTS; count += 1) {
        const endpoint = await createQueueEndpoint(fixture.server.url, fixture.server.key);
        await endpoint.run();
      }
      const text = await waitFor('the others together', async () => {
        const found = await read();
        return found.includes('berth_jobs_queued{endpoint="other"}') && found;
      });
      for (const [family, labels] of WITH_DATA.filter(([, names]) =>
        names.some((name) => name === 'endpoint'),
      )) {
        const values = new Set(
          [...text.matchAll(new RegExp(`^${family}\\w*\\{[^}]*endpoint="([^"]*)"`, 'gm'))].map(
            ([, value]) => value,
          ),
        );
        assert.ok(values.size <= MAX_ENDPOINT_LABELS, `${family} has ${values.size} values of ${labels[0]}`);
      }
      const [, queued = ''] = /^berth_jobs_submitted_total\{endpoint="other"\} (\d+)$/m.exec(text) ?? [];
      assert.ok(Number(queued) > 0, text);
    });
  });

describe('the families of a cluster and of traces', () => {
  const folder = createTemporaryFolder('kube', { config: SILENT_CLUSTER });
  after(() => folder.remove());
  const fixture = serverFixture('sqlite', {
    BERTH_KUBECONFIG: join(folder.path, 'config'),
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
  });

  test('are there with them', async () => {
    const { text } = await fixture.server.client().call('GET', '/metrics');
    for (const family of CONDITIONAL) assert.match(text, new RegExp(`^# TYPE ${family} `, 'm'));
  });
});
