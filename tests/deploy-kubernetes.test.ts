import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { deployedFolderStories } from '../packages/testing/src/deployed-folder-stories.ts';
import { freePort } from '../packages/testing/src/free-port.ts';
import { KUBERNETES_TEST_IMAGE } from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import { kubernetesEngineFixture } from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { type TestCluster, withKubernetes } from '../packages/testing/src/kubernetes/with-kubernetes.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { pageBlock } from './docs/pages.ts';

await withKubernetes((cluster) => {
  startedAsDocumented(cluster);
  deployedFolderStories(
    'Kubernetes',
    () => kubernetesEngineFixture(cluster),
    () => KUBERNETES_TEST_IMAGE,
  );
});

function startedAsDocumented({ kubeconfig, host }: TestCluster): void {
  test('docs/quick-start.md starts a server that uses the cluster', async (t) => {
    const home = createTemporaryFolder('kubeconfig', { '.kube/config': readFileSync(kubeconfig, 'utf8') });
    const port = await freePort();
    const url = `http://${host}:${port}`;
    const child = spawn(
      'bash',
      [
        '--norc',
        '-c',
        pageBlock('docs/quick-start.md', 'BERTH_KUBECONFIG').replace('http://192.0.2.10:8484', url),
      ],
      {
        // npm, and what it starts, end as one.
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          ...process.env,
          HOME: home.path,
          BERTH_PORT: `${port}`,
          BERTH_DATA: join(home.path, 'data'),
          BERTH_ROOT_KEY: ROOT_KEY,
          BERTH_DOCKER: 'off',
        },
      },
    );
    const ended = once(child, 'close');
    t.after(async () => {
      process.kill(-(child.pid ?? 0), 'SIGTERM');
      await ended;
      home.remove();
    });
    let output = '';
    for await (const piece of child.stdout.setEncoding('utf8')) {
      output += piece as string;
      if (/^berth is up at /m.test(output)) break;
    }
    const { body } = await createApiClient(url, ROOT_KEY).call<{ dataCenters: { id: string }[] }>(
      'GET',
      '/v2/catalog/datacenters',
    );
    assert.ok(
      body.dataCenters.some(({ id }) => id === 'K8S-1'),
      output,
    );
  });
}
