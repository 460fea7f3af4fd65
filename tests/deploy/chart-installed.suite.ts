import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import { deployHandler } from '../../packages/testing/src/deploy-handler.ts';
import { readKubeconfig } from '../../packages/cloud/src/engines/kubernetes/client/kubeconfig.ts';
import { KubernetesClient } from '../../packages/cloud/src/engines/kubernetes/client/kubernetes-client.ts';
import type { TestCluster } from '../../packages/testing/src/kubernetes/with-kubernetes.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { pageBlock } from '../docs/pages.ts';
import { CHART, helm, helmRelease, kubectl, RELEASE } from './helm-release.ts';

const execute = promisify(execFile);
const WITHIN_MS = 120_000;

/** The chart as an operator installs it, with an image that the nodes have. */
export function installedChartSuite(cluster: TestCluster, prepareImage: () => Promise<string>): void {
  describe('the Helm CHART, installed', {
    skip: 'reason' in helm && helm.reason,
    timeout: 2 * WITHIN_MS,
  }, () => {
    const namespace = `berth-chart-${process.pid}`;
    const folder = createTemporaryFolder('chart', { empty: '' });
    const admin = new KubernetesClient(() => readKubeconfig(cluster.kubeconfig));
    let client: ApiClient;
    let forward: ChildProcess;
    const { run, runHelm, explain } = helmRelease(cluster, namespace);
    /** What an install needs on this cluster besides. */
    let ofThisCluster: string[] = [];
    /** Runs a block of the documentation in this namespace; the endpoint that it makes goes. */
    const follow = async (block: string): Promise<void> => {
      const port = await freePort();
      const url = `http://127.0.0.1:${port}`;
      const script = block
        .replaceAll('--namespace berth ', `--namespace ${namespace} `)
        .replaceAll(/--namespace berth$/gm, `--namespace ${namespace}`)
        .replace(' 8484 &\n', ` ${port}:8484 >&2 &\nuntil curl -sf ${url}/readyz >&2; do sleep 0.1; done\n`)
        .replaceAll('http://127.0.0.1:8484', url);
      const prologue = `set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
helm() { if [ "$1" = install ]; then command helm "$@" "\${OF_THIS_CLUSTER[@]}"; else command helm "$@"; fi; }
OF_THIS_CLUSTER=(${ofThisCluster.map((word) => `'${word}'`).join(' ')})
`;
      const removed = script.includes('npx berth deploy') ? 'npx berth rm echo --yes\n' : '';
      const programs = [kubectl, 'path' in helm ? helm.path : ''].map((path) => dirname(path));
      await execute('bash', ['--norc', '-c', `${prologue}${script}${removed}`], {
        cwd: fileURLToPath(new URL('../..', import.meta.url)),
        env: {
          ...process.env,
          KUBECONFIG: cluster.kubeconfig,
          PATH: [...programs, process.env['PATH']].join(delimiter),
        },
      }).catch(async (error: { stdout: string; stderr: string }) =>
        assert.fail(`${block} failed: ${error.stdout}${error.stderr}\n${await explain()}`),
      );
    };
    const names = async (kind: string): Promise<string[]> =>
      (await run(kubectl, 'get', kind, '-o', 'name')).split('\n').filter((name) => name !== '');

    before(async () => {
      const image = await prepareImage();
      const [repository, tag] = image.split(/:(?=[^:/]*$)/);
      // A folder that every user may write, as the volumes of usual provisioners are for the group of a pod.
      chmodSync(folder.path, 0o777);
      await admin.create('/api/v1/persistentvolumes', {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: namespace },
        spec: {
          storageClassName: namespace,
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          hostPath: { path: folder.path },
        },
      });
      ofThisCluster = [
        `--timeout=${WITHIN_MS / 1000}s`,
        // Test machines are small.
        '--set-json',
        'kubernetes.settings={"cpuRequestRatio":0.01,"memoryRequestRatio":0.01}',
        ...[
          `image.repository=${repository}`,
          `image.tag=${tag}`,
          'resources.requests.cpu=10m',
          'persistence.size=1Gi',
          `persistence.storageClass=${namespace}`,
          'networkPolicy.enabled=true',
          'networkPolicy.from[0].namespaceSelector.matchLabels.ingress=yes',
        ].flatMap((value) => ['--set', value]),
      ];
      await follow(pageBlock('docs/quick-start.md', 'helm install'));
      const key = await run(
        kubectl,
        ...[
          'get',
          'secret',
          `${RELEASE}-keys`,
          '-o',
          'go-template={{index .data "root-key" | base64decode}}',
        ],
      );
      forward = spawn(kubectl, ['--namespace', namespace, 'port-forward', `service/${RELEASE}`, ':8484'], {
        env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [line] = (await once(forward.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
      const port = /127\.0\.0\.1:(\d+)/.exec(line.toString())?.[1];
      client = createApiClient(`http://127.0.0.1:${port}`, key);
    });
    after(async () => {
      if (forward?.kill()) await once(forward, 'exit');
      await admin.delete(`/api/v1/namespaces/${namespace}`);
      await admin.delete(`/api/v1/persistentvolumes/${namespace}`);
      admin.close();
      folder.remove();
    });

    test('a job runs on a pod of the cluster, through the Service in both directions', async () => {
      const endpoint = await deployHandler(
        client,
        'upper',
        'export default ({ input }) => input.toUpperCase();',
      );
      const { body, text } = await client.call<{ status: string; output: string }>(
        'POST',
        `/v2/${endpoint}/runsync?wait=90000`,
        { input: 'hello' },
      );
      assert.deepEqual([body.status, body.output], ['COMPLETED', 'HELLO'], `${text}\n${await explain()}`);
      assert.equal((await client.call('DELETE', `/v2/serverless/${endpoint}`)).status, 204);
      await waitFor('its pod is gone', async () => (await names('pods')).length === 1);
    });

    test('helm test passes', async () => {
      assert.match(await runHelm('test', RELEASE), /Phase:\s+Succeeded/);
    });

    test('an upgrade keeps the keys and the data', async () => {
      const key = await run(kubectl, 'get', 'secret', `${RELEASE}-keys`, '-o', 'jsonpath={.data}');
      await runHelm('upgrade', RELEASE, CHART, '--reuse-values', '--set', 'config.log.level=debug', '--wait');
      assert.equal(await run(kubectl, 'get', 'secret', `${RELEASE}-keys`, '-o', 'jsonpath={.data}'), key);
      const image = await run(
        kubectl,
        ...['exec', `${RELEASE}-0`, '--', '/opt/berth/node_modules/node/bin/node', '-e'],
        `console.log(require('node:fs').readdirSync('/data').join(' '))`,
      );
      assert.match(image, /berth\.db|\.sqlite|database/);
    });

    test('the install without values passes its own test', async () => {
      await runHelm('uninstall', RELEASE, '--wait');
      await follow(pageBlock('docs/deploy.md', 'helm install'));
    });

    test('an uninstall leaves the keys and the volume, and nothing else', async () => {
      await runHelm('uninstall', RELEASE, '--wait');
      assert.deepEqual(await names('statefulsets,services,configmaps,roles,rolebindings'), [
        'configmap/kube-root-ca.crt',
      ]);
      assert.deepEqual(await names('secrets'), [`secret/${RELEASE}-keys`]);
      assert.deepEqual(await names('persistentvolumeclaims'), [`persistentvolumeclaim/data-${RELEASE}-0`]);
    });
  });
}
