import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InstanceSpec } from '../instance.ts';
import { DEFAULT_CLUSTER_SETTINGS } from './kubernetes-options.ts';
import { networkPolicy } from './network-policy.ts';
import { podName } from './pod-labels.ts';
import { instanceManifests } from './pod-manifest.ts';
import { volumeClaim } from './volume-claims.ts';

const SPEC: InstanceSpec = {
  id: 'abc123',
  labels: { account: 'acc', kind: 'pod' },
  image: 'registry.example.com/team/app',
  command: { entrypoint: ['sh'], cmd: ['-c', 'echo $$ $(NAME)'] },
  env: { TOKEN: 'secret', 'odd name': 'x' },
  ports: [{ port: 80, protocol: 'http', listenPortVariable: 'PORT' }],
  mounts: [
    {
      source: '/data/v',
      path: '/workspace',
      volume: { id: 'v1', sizeInGb: 5, shared: true, type: 'STANDARD' },
    },
  ],
  cpu: 2,
  memoryInGb: 4,
  gpus: null,
  containerDiskInGb: 10,
  registry: { username: 'me', password: 'word' },
};
const CONTEXT = {
  installation: 'here',
  dataCenterId: 'K8S-1',
  settings: DEFAULT_CLUSTER_SETTINGS,
  gpuProducts: [],
  claims: new Map([['/workspace', 'the-claim']]),
};

interface Manifest {
  metadata: { labels: Record<string, string> };
  spec: Record<string, unknown> & { containers: [Record<string, unknown>] };
}

describe('the manifests of an instance', () => {
  const { name, pod, environment, pullSecret } = instanceManifests(SPEC, CONTEXT);
  const { spec } = pod as unknown as Manifest;
  const [container] = spec.containers;

  test('are confined, and leave restarts to Berth', () => {
    assert.equal(name, podName('here', 'abc123'));
    assert.deepEqual(
      [
        spec['restartPolicy'],
        spec['automountServiceAccountToken'],
        spec['enableServiceLinks'],
        spec['securityContext'],
      ],
      ['Never', false, false, { seccompProfile: { type: 'RuntimeDefault' } }],
    );
    const { allowPrivilegeEscalation, capabilities } = container['securityContext'] as {
      allowPrivilegeEscalation: boolean;
      capabilities: { drop: string[]; add: string[] };
    };
    assert.equal(allowPrivilegeEscalation, false);
    assert.deepEqual(capabilities.drop, ['ALL']);
    assert.equal(capabilities.add.includes('NET_RAW'), false);
  });

  test('keep the environment in a secret, and arguments as they are', () => {
    const { data } = environment as { data: Record<string, string> };
    assert.equal(Buffer.from(data['TOKEN'] ?? '', 'base64').toString(), 'secret');
    assert.equal(Buffer.from(data['PORT'] ?? '', 'base64').toString(), '80');
    assert.equal(Buffer.from(data['NVIDIA_VISIBLE_DEVICES'] ?? '', 'base64').toString(), 'void');
    assert.deepEqual(container['env'], [{ name: 'odd name', value: 'x' }]);
    assert.deepEqual(container['args'], ['-c', 'echo $$$$ $$(NAME)']);
    assert.equal(JSON.stringify(pod).includes('secret"'), false);
    assert.match(JSON.stringify(pullSecret), /registry\.example\.com/);
    assert.deepEqual(spec['imagePullSecrets'], [{ name: `${name}-pull` }]);
  });

  test('have limits, shared memory and the claim of the volume', () => {
    assert.deepEqual((container['resources'] as { limits: unknown }).limits, {
      cpu: '2000m',
      memory: '4096Mi',
      'ephemeral-storage': '10240Mi',
    });
    assert.deepEqual(spec['volumes'], [
      { name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: '2048Mi' } },
      { name: 'mount-0', persistentVolumeClaim: { claimName: 'the-claim' } },
    ]);
  });

  test('follow the settings of the data center, and the GPU', () => {
    const settings = {
      ...DEFAULT_CLUSTER_SETTINGS,
      queue: 'team',
      scheduler: 'other',
      runtimeClass: 'gvisor',
      priorityClass: 'normal',
      interruptiblePriorityClass: 'low',
      nodeSelector: { pool: 'berth' },
      tolerations: [{ key: 'pool', operator: 'Exists' as const }],
    };
    const made = instanceManifests(
      { ...SPEC, interruptible: true, gpus: { typeId: 'NVIDIA L4', count: 2 } },
      { ...CONTEXT, settings, gpuProducts: ['NVIDIA-L4'] },
    );
    const gpuPod = made.pod as unknown as Manifest;
    assert.equal(gpuPod.metadata.labels['kueue.x-k8s.io/queue-name'], 'team');
    assert.deepEqual(
      ['schedulerName', 'runtimeClassName', 'priorityClassName', 'nodeSelector'].map(
        (field) => gpuPod.spec[field],
      ),
      ['other', 'gvisor', 'low', { pool: 'berth' }],
    );
    assert.deepEqual(gpuPod.spec['tolerations'], [
      { key: 'pool', operator: 'Exists' },
      { key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoSchedule' },
    ]);
    assert.match(JSON.stringify(gpuPod.spec['affinity']), /"nvidia.com\/gpu.product".*NVIDIA-L4/);
    assert.equal(
      (gpuPod.spec.containers[0]['resources'] as { limits: Record<string, string> }).limits['nvidia.com/gpu'],
      '2',
    );
    assert.equal('NVIDIA_VISIBLE_DEVICES' in (made.environment as { data: object }).data, false);
  });
});

test('names fit Kubernetes and differ for every id', () => {
  const ids = ['abc', 'Abc', 'a.b', 'a_b', 'x'.repeat(128), '-'];
  const names = ids.map((id) => podName('here', id));
  assert.equal(new Set(names).size, ids.length);
  for (const name of names) assert.match(name, /^[a-z0-9](?:[a-z0-9-]{0,55}[a-z0-9])?$/);
});

test('a policy opens an account to itself, Berth, DNS and the internet only', () => {
  const policy = networkPolicy({ installation: 'here', account: 'acc', serverUrl: 'http://10.0.0.5:8484' });
  const text = JSON.stringify(policy);
  assert.match(text, /"except":\["10\.0\.0\.0\/8"/);
  assert.match(text, /"cidr":"10\.0\.0\.5\/32".*"port":8484/);
  // Anybody may give the label of Berth to a pod.
  assert.doesNotMatch(text, /namespaceSelector/);
});

test('where Berth is a pod, a policy opens an account to the pods of its namespace at its port', () => {
  const policy = networkPolicy({
    installation: 'here',
    account: 'acc',
    serverUrl: 'http://berth.cloud.svc:80',
    berthNamespace: 'cloud',
    berthPort: 8484,
  });
  const berth = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'cloud' } },
    podSelector: { matchLabels: { 'app.kubernetes.io/name': 'berth' } },
  };
  const { ingress, egress } = policy['spec'] as { ingress: { from: unknown[] }[]; egress: unknown[] };
  assert.deepEqual(ingress[0]?.from[1], berth);
  assert.deepEqual(egress.at(-1), { to: [berth], ports: [{ protocol: 'TCP', port: 8484 }] });
});

test('a claim has the class of its tier, and is shared or not', () => {
  const settings = { ...DEFAULT_CLUSTER_SETTINGS, storageClasses: { STANDARD: 'nfs', default: 'local' } };
  const context = { installation: 'here', dataCenterId: 'K8S-1', settings };
  const shared = volumeClaim({ id: 'v', sizeInGb: 5, shared: true, type: 'STANDARD' }, context, 'acc');
  const own = volumeClaim({ id: 'p', sizeInGb: 5, shared: false }, context, 'acc');
  assert.match(JSON.stringify(shared), /ReadWriteMany.*"storage":"5Gi".*nfs/);
  assert.match(JSON.stringify(own), /ReadWriteOnce.*local/);
});
