import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { findClusterPrograms } from '../../packages/testing/src/kubernetes/cluster-programs.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { HELM, KUBECONFORM, goProgram } from './go-program.ts';
import { SCHEMA_LOCATION, writeKubernetesSchemas } from './kubernetes-schemas.ts';

const execute = promisify(execFile);
const chart = fileURLToPath(new URL('../../deploy/helm/berth', import.meta.url));
const helm = await goProgram(HELM.name, HELM.module);
const kubeconform = await goProgram(KUBECONFORM.name, KUBECONFORM.module);
const programs = findClusterPrograms();
const program = (name: string): string => join('bin' in programs ? programs.bin : '', name);
const missing = [helm, kubeconform, programs].find((found) => 'reason' in found);
const skip = missing !== undefined && 'reason' in missing && missing.reason;
const VERSION = '1.34.0';

/** Each set of values turns other parts of the chart on. */
const VALUES: Record<string, string[]> = {
  'without values': [],
  'with PostgreSQL, the Kubernetes engine and HTTPS': [
    ...['replicas=3', 'database.url=postgres://berth:x@db/berth', 'kubernetes.enabled=true'],
    ...['tls.enabled=true', 'tls.secretName=berth-tls'],
  ],
  'with an ingress and a network policy, without a volume': [
    ...[
      'ingress.enabled=true',
      'ingress.className=nginx',
      'ingress.hosts={berth.example.com}',
      'ingress.wildcard=true',
    ],
    ...[
      'ingress.tls[0].secretName=x',
      'ingress.tls[0].hosts={berth.example.com}',
      'persistence.enabled=false',
    ],
    ...['networkPolicy.enabled=true', 'networkPolicy.from[0].ipBlock.cidr=10.0.0.0/8'],
  ],
};

/** The API server knows best which fields there are: unknown ones are refused. Nothing is run. */
describe('a real API server and kubeconform accept the Helm chart', { skip }, () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const folder = createTemporaryFolder('api-server', {
    'service-account.key': privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    'tokens.csv': 'token,admin,admin,"system:masters"\n',
  });
  const started: ChildProcess[] = [];
  const start = (name: string, ...args: string[]): void => {
    started.unshift(spawn(program(name), args, { stdio: 'ignore', cwd: folder.path }));
  };
  let kubectl: (...args: string[]) => Promise<{ stdout: string; stderr: string }>;

  before(async () => {
    const [client, peer, secure] = [await freePort(), await freePort(), await freePort()];
    const etcd = `http://127.0.0.1:${client}`;
    start(
      'etcd',
      '--data-dir=etcd',
      `--listen-client-urls=${etcd}`,
      `--advertise-client-urls=${etcd}`,
      `--listen-peer-urls=http://127.0.0.1:${peer}`,
    );
    start(
      'kube-apiserver',
      ...[
        `--etcd-servers=${etcd}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${secure}`,
        '--cert-dir=certificates',
      ],
      ...['--service-account-issuer=https://berth.test', '--service-account-key-file=service-account.key'],
      ...[
        '--service-account-signing-key-file=service-account.key',
        '--service-cluster-ip-range=10.99.0.0/24',
      ],
      ...['--authorization-mode=RBAC', '--token-auth-file=tokens.csv'],
    );
    const server = [
      '--server',
      `https://127.0.0.1:${secure}`,
      '--insecure-skip-tls-verify',
      '--token',
      'token',
    ];
    kubectl = (...args) =>
      execute(program('kubectl'), [...server, ...args], {
        env: { HOME: folder.path },
        maxBuffer: 32_000_000,
      });
    await waitFor(
      'the API server is ready',
      () => kubectl('get', 'namespace', 'default').catch(() => undefined),
      60_000,
    );
    // Otherwise made by a controller.
    await kubectl('create', 'serviceaccount', 'default');
    const { stdout } = await kubectl('get', '--raw', '/openapi/v2');
    writeKubernetesSchemas(JSON.parse(stdout) as Parameters<typeof writeKubernetesSchemas>[0], {
      folder: folder.path,
      version: VERSION,
    });
  });
  after(async () => {
    for (const child of started) if (child.kill('SIGKILL')) await once(child, 'exit');
    folder.remove();
  });

  /** Fails where a resource is not as its schema says; answers how many were checked. */
  const conform = async (manifests: string): Promise<number> => {
    folder.write({ 'conform.yaml': manifests });
    const { stdout } = await execute('path' in kubeconform ? kubeconform.path : '', [
      ...['-strict', '-summary', '-output', 'json', '-kubernetes-version', VERSION],
      ...['-schema-location', join(folder.path, SCHEMA_LOCATION), '-skip', 'ServiceMonitor'],
      join(folder.path, 'conform.yaml'),
    ]).catch((error: { stdout: string; stderr: string }) => assert.fail(error.stdout + error.stderr));
    return (JSON.parse(stdout) as { summary: { valid: number } }).summary.valid;
  };
  const render = async (values: readonly string[]): Promise<{ manifests: string; count: number }> => {
    const sets = values.flatMap((value) => ['--set', value]);
    const args = ['template', 'prod', chart, '--kube-version', VERSION, '-n', 'default', ...sets];
    const { stdout } = await execute('path' in helm ? helm.path : '', args);
    return { manifests: stdout, count: stdout.match(/^kind: /gm)?.length ?? 0 };
  };

  for (const [name, values] of Object.entries(VALUES))
    test(name, async () => {
      const { manifests, count } = await render(values);
      folder.write({ 'rendered.yaml': manifests });
      const applied = await kubectl(
        'apply',
        '--dry-run=server',
        '--validate=strict',
        '-f',
        join(folder.path, 'rendered.yaml'),
      );
      assert.equal(applied.stdout.match(/ created \(server dry run\)$/gm)?.length, count, applied.stderr);
      assert.equal(await conform(manifests), count);
    });

  test('the role of deploy/kubernetes, and the chart with a monitor of Prometheus, whose kind Kubernetes lacks', async () => {
    const role = readFileSync(new URL('../../deploy/kubernetes/role.yaml', import.meta.url), 'utf8');
    assert.equal(await conform(role), role.match(/^kind: /gm)?.length);
    const { manifests, count } = await render(['serviceMonitor.enabled=true']);
    assert.equal(await conform(manifests), count - 1);
  });

  test('kubeconform refuses a field that does not exist', async () => {
    const { manifests } = await render([]);
    await assert.rejects(
      conform(manifests.replace('podManagementPolicy:', 'podManagmentPolicy:')),
      /podManagmentPolicy/,
    );
  });
});
