import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../packages/cloud/src/support/config/load-config.ts';
import { HELM, goProgram } from './go-program.ts';

const chart = fileURLToPath(new URL('../../deploy/helm/berth', import.meta.url));
const helm = await goProgram(HELM.name, HELM.module);

interface Resource {
  kind: string;
  metadata: { name: string; namespace?: string };
  [field: string]: unknown;
}

describe('the Helm chart', { skip: 'reason' in helm && helm.reason }, () => {
  const run = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
    promisify(execFile)('path' in helm ? helm.path : '', args);
  const render = async (...values: string[]): Promise<Resource[]> => {
    const sets = values.flatMap((value) => ['--set', value]);
    const { stdout } = await run(
      'template',
      'prod',
      chart,
      '--kube-version',
      '1.34.0',
      '-n',
      'berth',
      ...sets,
    );
    return parseAllDocuments(stdout)
      .map((document) => document.toJS() as Resource | null)
      .filter((resource) => resource !== null);
  };
  const kinds = (resources: Resource[]): string[] => resources.map(({ kind }) => kind).sort();
  /** The settings that the server would read, checked as it checks them. */
  const settingsOf = async (resources: Resource[]): ReturnType<typeof loadConfig> => {
    const map = resources.find(({ kind }) => kind === 'ConfigMap') as unknown as {
      data: Record<string, string>;
    };
    return loadConfig({ env: { BERTH_CONFIG: 'x' }, readFile: async () => map.data['berth.yaml'] ?? '' });
  };

  test('lint finds nothing', async () => {
    const { stdout } = await run('lint', '--strict', chart);
    assert.match(stdout, /1 chart\(s\) linted, 0 chart\(s\) failed/);
  });

  test('without values it is one server with SQLite on a volume, without rights in the cluster', async () => {
    const resources = await render();
    assert.deepEqual(kinds(resources), [
      'ConfigMap',
      'Pod',
      'Secret',
      'Service',
      'Service',
      'ServiceAccount',
      'StatefulSet',
    ]);
    assert.equal((await settingsOf(resources)).config.workerUrl, 'http://prod-berth.berth.svc:8484');
    assert.deepEqual(kinds(await render('hooks.test=false')).includes('Pod'), false);
  });

  test('every part can be turned on, and the settings are those of the server', async () => {
    const resources = await render(
      ...[
        'replicas=3',
        'database.existingSecret=pg',

        'serviceMonitor.enabled=true',
      ],
      ...['ingress.enabled=true', 'ingress.hosts={berth.example.com}', 'ingress.wildcard=true'],
      ...['tls.enabled=true', 'tls.secretName=berth-tls', 'tls.plainFrom={10.42.0.0/16}'],
      ...[
        'networkPolicy.enabled=true',
        'networkPolicy.from[0].ipBlock.cidr=10.0.0.0/8',
        'config.log.level=debug',
      ],
    );
    for (const kind of ['Ingress', 'PodDisruptionBudget', 'ServiceMonitor', 'NetworkPolicy'])
      assert.ok(kinds(resources).includes(kind), kind);
    const policy = JSON.stringify(resources.find(({ kind }) => kind === 'NetworkPolicy'));
    assert.match(policy, /"app.kubernetes.io\/name":"berth-test"/, 'the pod of `helm test` may connect');
    const { config } = await settingsOf(resources);
    assert.deepEqual(
      [config.publicUrl, config.tls.certificate, config.tls.plainFrom, config.log.level],
      ['https://berth.example.com', '/etc/berth/tls/tls.crt', ['10.42.0.0/16'], 'debug'],
    );
    const text = JSON.stringify(resources.find(({ kind }) => kind === 'StatefulSet'));
    assert.match(text, /"BERTH_DATABASE_URL","valueFrom":\{"secretKeyRef":\{"name":"pg","key":"url"\}\}/);
    assert.match(text, /"readOnlyRootFilesystem":true/);
    assert.equal(config.metrics.listen, '0.0.0.0:9464');
    assert.match(text, /\{"name":"metrics","containerPort":9464\}/);
    const monitor = (found: typeof resources): string =>
      JSON.stringify(found.find(({ kind }) => kind === 'ServiceMonitor'));
    assert.match(monitor(resources), /"port":"metrics"/);
    const withKey = await render('serviceMonitor.enabled=true', 'serviceMonitor.keySecret=berth-metrics');
    assert.match(monitor(withKey), /"port":"http".*"credentials":\{"name":"berth-metrics","key":"key"\}/);
    assert.equal((await settingsOf(withKey)).config.metrics.listen, '');
  });

  test('with the Kubernetes engine it has a role in the namespace of its workers', async () => {
    const resources = await render('kubernetes.enabled=true', 'kubernetes.namespace=work');
    const role = resources.find(({ kind }) => kind === 'Role');
    assert.equal(role?.metadata.namespace, 'work');
    assert.equal(JSON.stringify(role).includes('"*"'), false);
    const map = resources.find(({ kind }) => kind === 'ConfigMap') as unknown as {
      data: Record<string, string>;
    };
    assert.deepEqual((parse(map.data['berth.yaml'] ?? '') as Record<string, unknown>)['dataCenters'], [
      { id: 'K8S-1', engine: 'kubernetes', namespace: 'work', berthImage: 'ghcr.io/berth-cloud/berth:0.2.0' },
    ]);
    const without = kinds(await render('kubernetes.enabled=true', 'rbac.readNodes=false'));
    assert.deepEqual([without.includes('Role'), without.includes('ClusterRole')], [true, false]);
  });

  test('values that contradict each other are refused with the reason', async () => {
    const refused = (...values: string[]): Promise<string> =>
      render(...values).then(
        () => 'accepted',
        (error: { stderr: string }) => error.stderr,
      );
    assert.match(await refused('replicas=2'), /replicas is more than 1: set database\.url/);
    assert.match(await refused('tls.enabled=true'), /tls\.enabled needs tls\.secretName/);
    assert.match(await refused('ingress.enabled=true'), /ingress\.enabled needs ingress\.hosts/);
    assert.match(await refused('database.url=mysql://x'), /database.*url/);
    assert.match(await refused('keys.root=short'), /keys.*root/);
  });
});

test('the compose file and the chart name the version of the package', () => {
  const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const { appVersion, version: chartVersion } = parse(read('deploy/helm/berth/Chart.yaml')) as Record<
    string,
    string
  >;
  assert.deepEqual([appVersion, chartVersion], [version, version]);
  const { services } = parse(read('deploy/compose.yaml')) as { services: Record<string, { image: string }> };
  assert.match(services['berth']?.image ?? '', new RegExp(`:${version.replaceAll('.', '\\.')}\\}$`));
});

test('the chart gives the engine the rights of deploy/kubernetes/role.yaml, no more and no less', (context) => {
  const file = new URL('../../deploy/kubernetes/role.yaml', import.meta.url);
  if (!existsSync(file)) return context.skip('deploy/kubernetes/role.yaml is not there yet');
  const wanted = parseAllDocuments(readFileSync(file, 'utf8')).map(
    (document) => document.toJS() as { kind: string; rules?: unknown },
  );
  const rules = (name: string): unknown => parse(readFileSync(join(chart, 'files', name), 'utf8'));
  assert.deepEqual(rules('role-rules.yaml'), wanted.find(({ kind }) => kind === 'Role')?.rules);
  assert.deepEqual(
    rules('cluster-role-rules.yaml'),
    wanted.find(({ kind }) => kind === 'ClusterRole')?.rules,
  );
});
