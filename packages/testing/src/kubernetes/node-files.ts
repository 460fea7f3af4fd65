import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const KWOK_STAGES = resolve(import.meta.dirname, '../../../../tests/kubernetes/kwok-stages.yaml');

export interface NodeAddresses {
  name: string;
  /** Its folder. */
  folder: string;
  address: string;
  podSubnet: string;
  podGateway: string;
  /** The address of this machine in the nodes' network. */
  host: string;
  certificates: string;
  cgroup: string;
}

/** Writes the configuration of a node's containerd, network and kubelet. JSON is YAML. */
export function writeNodeFiles(node: NodeAddresses): void {
  const { folder } = node;
  for (const name of ['cni', 'run', 'root', 'fs']) mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'containerd.toml'), containerdConfig(folder));
  writeFileSync(join(folder, 'cni', '10-pods.conflist'), JSON.stringify(podNetwork(node)));
  writeFileSync(join(folder, 'kubelet.yaml'), JSON.stringify(kubeletConfig(node)));
  writeFileSync(join(folder, 'proxy.yaml'), JSON.stringify(proxyConfig(node)));
}

function containerdConfig(folder: string): string {
  const unused = ['aufs', 'btrfs', 'zfs', 'devmapper'].map(
    (name) => `"io.containerd.snapshotter.v1.${name}"`,
  );
  return `
version = 2
root = "${folder}/root"
state = "${folder}/run/state"
disabled_plugins = [${unused.join(', ')}, "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "${folder}/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  disable_apparmor = true
  # A machine may lack CAP_SYS_RESOURCE: then scores cannot be lowered.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`;
}

/** Point-to-point links, routed by the node: no bridge whose packets a firewall of the machine could drop. */
function podNetwork({ podSubnet, podGateway }: NodeAddresses): unknown {
  return {
    cniVersion: '1.0.0',
    name: 'pods',
    plugins: [
      {
        type: 'ptp',
        ipMasq: false,
        mtu: 1400,
        ipam: {
          type: 'host-local',
          ranges: [[{ subnet: podSubnet, gateway: podGateway }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
    ],
  };
}

/** Services of the cluster have addresses for its pods. */
function proxyConfig({ folder, address }: NodeAddresses): unknown {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clientConnection: { kubeconfig: join(folder, '..', 'proxy.conf') },
    mode: 'iptables',
    bindAddress: address,
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
    // The limits of the machine are not the node's to change.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    iptables: { minSyncPeriod: '100ms', syncPeriod: '30s' },
  };
}

function kubeletConfig({
  name,
  folder,
  address,
  podSubnet,
  host,
  certificates,
  cgroup,
}: NodeAddresses): unknown {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: `unix://${folder}/run/containerd.sock`,
    address,
    readOnlyPort: 0,
    healthzBindAddress: '127.0.0.1',
    tlsCertFile: `${certificates}/${name}.crt`,
    tlsPrivateKeyFile: `${certificates}/${name}.key`,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true, cacheTTL: '5s' },
      x509: { clientCAFile: `${certificates}/ca.crt` },
    },
    authorization: { mode: 'Webhook' },
    cgroupDriver: 'cgroupfs',
    cgroupRoot: cgroup,
    cgroupsPerQOS: true,
    enforceNodeAllocatable: ['pods'],
    failCgroupV1: false,
    failSwapOn: false,
    podCIDR: podSubnet,
    clusterDomain: 'cluster.local',
    clusterDNS: [host],
    // A full disk or little memory of the machine under test is no reason to evict.
    evictionHard: {
      'memory.available': '50Mi',
      'nodefs.available': '1%',
      'imagefs.available': '1%',
      'nodefs.inodesFree': '1%',
    },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    nodeStatusUpdateFrequency: '5s',
    nodeLeaseDurationSeconds: 15,
    serializeImagePulls: false,
    maxPods: 200,
    kubeAPIQPS: 100,
    kubeAPIBurst: 200,
    containerLogMaxSize: '50Mi',
  };
}

/** For nodes and pods that are objects only. Each simulated container has written one line. */
export function writeKwokFiles(folder: string, podSubnet: string): void {
  // In a folder of its own: each log that is followed watches the whole folder, where the cluster writes its own logs.
  const logs = join(folder, 'kwok-output');
  mkdirSync(logs);
  const logsFile = join(logs, 'output.log');
  writeFileSync(logsFile, `${new Date(0).toISOString()} stdout F it runs\n`);
  const config = {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'ClusterLogs',
    metadata: { name: 'all' },
    spec: { logs: [{ logsFile, follow: true }] },
  };
  writeFileSync(
    join(folder, 'kwok.yaml'),
    `${readFileSync(KWOK_STAGES, 'utf8').trim()}\n---\n${JSON.stringify(config)}\n`,
  );
  writeFileSync(join(folder, 'kwok-subnet'), `${podSubnet}\n`);
}
