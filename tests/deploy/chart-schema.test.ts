import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { goProgram } from './go-program.ts';

const execute = promisify(execFile);
const chart = fileURLToPath(new URL('../../deploy/helm/berth', import.meta.url));
const helm = await goProgram('helm', 'helm.sh/helm/v3/cmd/helm@v3.22.0');
const programs = process.env['BERTH_TEST_KUBERNETES_BIN'] ?? join(homedir(), '.cache/berth/kubernetes');
const program = (name: string): string => join(programs, name);
const missing = ['etcd', 'kube-apiserver', 'kubectl'].find((name) => !existsSync(program(name)));
const skip = 'reason' in helm ? helm.reason : missing !== undefined && `${missing} is not in ${programs}`;

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
describe('a real API server accepts the Helm chart', { skip }, () => {
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
    kubectl = (...args) => execute(program('kubectl'), [...server, ...args], { env: { HOME: folder.path } });
    await waitFor(
      'the API server is ready',
      () => kubectl('get', 'namespace', 'default').catch(() => undefined),
      60_000,
    );
    // Otherwise made by a controller.
    await kubectl('create', 'serviceaccount', 'default');
  });
  after(async () => {
    for (const child of started) if (child.kill('SIGKILL')) await once(child, 'exit');
    folder.remove();
  });

  for (const [name, values] of Object.entries(VALUES))
    test(name, async () => {
      const sets = values.flatMap((value) => ['--set', value]);
      const args = ['template', 'prod', chart, '--kube-version', '1.34.0', '-n', 'default', ...sets];
      const { stdout } = await execute('path' in helm ? helm.path : '', args);
      folder.write({ 'rendered.yaml': stdout });
      const applied = await kubectl(
        'apply',
        '--dry-run=server',
        '--validate=strict',
        '-f',
        join(folder.path, 'rendered.yaml'),
      );
      const kinds = stdout.match(/^kind: /gm)?.length;
      assert.equal(applied.stdout.match(/ created \(server dry run\)$/gm)?.length, kinds, applied.stderr);
    });
});
