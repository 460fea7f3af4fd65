// A real Kubernetes for the tests: etcd, API server, controllers and scheduler on this machine, and nodes
// with containerd and kubelet
// in namespaces of their own. It needs root and Linux. Everything of it ends with the process that started it.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { imageArchive, PROGRAMS } from '../docker-test-image.mjs';
import { ClusterCertificates } from './cluster-certificates.ts';
import { findClusterPrograms, isInstalled } from './cluster-programs.ts';
import { berthLayer } from './berth-layer.ts';
import { type ImageConfig, writeImageTar } from './image-tar.ts';
import { writeKwokFiles, writeNodeFiles } from './node-files.ts';

const START_TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 50;
const MAX_CLUSTERS = 16;
/** The image of every node: a shell, small programs, Node, and Berth. */
export const KUBERNETES_TEST_IMAGE = 'localhost/berth-test:1';
/** The same, configured as deploy/docker/Dockerfile does. */
export const KUBERNETES_BERTH_IMAGE = 'localhost/berth:1';
const BERTH_CONFIG: ImageConfig = {
  Entrypoint: ['berth'],
  Cmd: ['up'],
  Env: ['PATH=/bin', 'BERTH_HOST=0.0.0.0', 'BERTH_PORT=8484', 'BERTH_DATA=/data', 'BERTH_LOG_FORMAT=json'],
  User: '10001:10001',
  WorkingDir: '/data',
};
const SUPERVISOR = join(import.meta.dirname, 'run-cluster.sh');

export interface KubernetesForTests {
  kubeconfig: string;
  /** The address of this machine that pods reach. */
  host: string;
  /** Another one of it, which is not in a private range. */
  publicAddress: string;
  /** Ends a part of it as a power cut would, until it is restored. */
  kill(part: ClusterPart): void;
  restore(part: ClusterPart): void;
  stop(): Promise<void>;
}

export type ClusterPart = 'etcd' | 'apiserver' | `node-${number}`;

interface ClusterFeatures {
  nodes: number;
  simulated: boolean;
  networkPolicies: boolean;
}

/**
 * A running cluster, or why there is none, in one line. With BERTH_REQUIRE_KUBERNETES=1 that is an error, unless
 * only a program for one of the features is missing. With `simulated`, nodes that are objects only, labelled
 * `type=kwok`, and their pods are played by kwok. With `networkPolicies`, kube-router enforces them.
 */
export async function startKubernetes({
  nodes = 2,
  simulated = false,
  networkPolicies = process.env['BERTH_TEST_NETWORK_POLICIES'] === '1',
}: Partial<ClusterFeatures> = {}): Promise<KubernetesForTests | { reason: string }> {
  const basic = findClusterPrograms();
  if ('reason' in basic && process.env['BERTH_REQUIRE_KUBERNETES'] === '1')
    throw new Error(`BERTH_REQUIRE_KUBERNETES=1, but ${basic.reason}`);
  const programs = findClusterPrograms([
    ...(simulated ? ['kwok'] : []),
    ...(networkPolicies ? ['kube-router'] : []),
  ]);
  if ('reason' in programs) return programs;
  if (networkPolicies && !isInstalled('ipset')) return { reason: 'ipset is not installed' };
  return new TestCluster(programs.bin, { nodes, simulated, networkPolicies }).start();
}

class TestCluster {
  readonly #bin: string;
  readonly #features: ClusterFeatures;
  readonly #folder = mkdtempSync(join(tmpdir(), 'berth-kubernetes-'));
  readonly #number: number;
  readonly #host: string;

  constructor(bin: string, features: ClusterFeatures) {
    this.#bin = bin;
    this.#features = features;
    this.#number = claimBridge();
    this.#host = `10.120.${this.#number}.1`;
  }

  get #server(): string {
    return `https://${this.#host}:6443`;
  }

  /** Of the range for documentation. */
  get #publicAddress(): string {
    return `203.0.113.${1 + this.#number}`;
  }

  async start(): Promise<KubernetesForTests> {
    const supervisor = this.#startSupervisor();
    const ended = once(supervisor, 'exit');
    const stop = async (): Promise<void> => {
      supervisor.ref();
      supervisor.stdin.end();
      await ended;
    };
    try {
      const hasEnded = (): boolean => supervisor.exitCode !== null;
      await this.#waitUntil(
        'the API server answers',
        hasEnded,
        async () => (await this.#get('/readyz')) === 'ok',
      );
      supervisor.stdin.write('\n');
      await this.#waitUntil('its nodes are ready', hasEnded, () => this.#isReady());
    } catch (error) {
      await stop();
      throw error;
    }
    // It does not keep the run from ending; the cluster then ends with it.
    supervisor.unref();
    (supervisor.stdin as Socket).unref();
    const fileOf = (part: ClusterPart, suffix: string): string => join(this.#folder, `${part}.${suffix}`);
    return {
      kubeconfig: join(this.#folder, 'admin.conf'),
      host: this.#host,
      publicAddress: this.#publicAddress,
      kill: (part) => {
        writeFileSync(fileOf(part, 'held'), '');
        process.kill(Number(readFileSync(fileOf(part, 'pid'), 'utf8')), 'SIGKILL');
      },
      restore: (part) => rmSync(fileOf(part, 'held')),
      stop,
    };
  }

  #startSupervisor() {
    this.#writeFiles();
    return spawn(
      'bash',
      [
        SUPERVISOR,
        this.#folder,
        this.#bin,
        bridgeName(this.#number),
        this.#host,
        String(this.#features.nodes),
      ],
      {
        stdio: ['pipe', 'ignore', 'ignore'],
        detached: true,
        env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` },
      },
    );
  }

  #writeFiles(): void {
    const certificates = new ClusterCertificates(join(this.#folder, 'pki'));
    const conf = (file: string, identity: string): void =>
      writeFileSync(join(this.#folder, file), certificates.kubeconfig(identity, this.#server), {
        mode: 0o600,
      });
    certificates.issue('apiserver', {
      commonName: 'kube-apiserver',
      names: ['DNS:kubernetes.default.svc', `IP:${this.#host}`, `IP:10.97.${this.#number}.1`],
    });
    certificates.issue('admin', { commonName: 'admin', organization: 'system:masters' });
    certificates.issue('controllers', { commonName: 'system:kube-controller-manager' });
    certificates.issue('scheduler', { commonName: 'system:kube-scheduler' });
    certificates.issue('proxy', { commonName: 'kube-proxy', organization: 'system:masters' });
    for (const identity of ['admin', 'controllers', 'scheduler', 'proxy']) conf(`${identity}.conf`, identity);
    writeFileSync(join(this.#folder, 'service-subnet'), `10.97.${this.#number}.0/24\n`);
    writeFileSync(join(this.#folder, 'public-address'), `${this.#publicAddress}\n`);
    if (this.#features.networkPolicies) writeFileSync(join(this.#folder, 'network-policies'), '');
    writeFileSync(
      join(this.#folder, 'Corefile'),
      `.:53 {\n bind ${this.#host}\n errors\n kubernetes cluster.local in-addr.arpa {\n  kubeconfig ` +
        `${join(this.#folder, 'admin.conf')}\n  ttl 1\n }\n}\n`,
    );
    if (this.#features.simulated) writeKwokFiles(this.#folder, `10.${180 + this.#number}.0.0/16`);
    this.#writeImages();
    const all = Array.from({ length: this.#features.nodes }, (_, index) => this.#nodeAddresses(index));
    for (const node of all) {
      certificates.issue(node.name, {
        commonName: `system:node:${node.name}`,
        organization: 'system:nodes',
        names: [`DNS:${node.name}`, `IP:${node.address}`],
      });
      mkdirSync(node.folder, { recursive: true });
      const peers = all
        .filter((other) => other !== node)
        .map((other) => `${other.address}=${other.podSubnet}`);
      writeFileSync(
        join(node.folder, 'addresses'),
        `NODE_ADDRESS=${node.address} POD_SUBNET=${node.podSubnet} PEERS="${peers.join(' ')}"\n`,
      );
      conf(join(node.name, 'kubelet.conf'), node.name);
      writeNodeFiles({ ...node, host: this.#host, certificates: certificates.folder });
    }
  }

  #nodeAddresses(index: number) {
    const subnet = `10.${130 + this.#number}.${index}`;
    const name = `node-${index}`;
    return {
      name,
      folder: join(this.#folder, name),
      address: `10.120.${this.#number}.${10 + index}`,
      podSubnet: `${subnet}.0/24`,
      podGateway: `${subnet}.1`,
      cgroup: `/berth-test-${bridgeName(this.#number)}/${name}`,
    };
  }

  #writeImages(): void {
    const images = join(this.#folder, 'images');
    mkdirSync(images);
    const pausing = Buffer.concat([...imageArchive([join(this.#bin, 'pause')])]);
    writeImageTar(
      join(images, '0-pause.tar'),
      [pausing],
      [{ name: 'localhost/pause:1', config: { Entrypoint: ['/bin/pause'] } }],
    );
    const programs = [...PROGRAMS, 'node', 'tar', 'stat', 'du'];
    const own = { Cmd: ['sh', '-c', 'echo the command of the image; sleep 600'], Env: ['PATH=/bin'] };
    writeImageTar(
      join(images, '1-test.tar'),
      [Buffer.concat([...imageArchive(programs)]), berthLayer()],
      [
        { name: KUBERNETES_TEST_IMAGE, config: { ...own, WorkingDir: '/work' } },
        { name: KUBERNETES_BERTH_IMAGE, config: BERTH_CONFIG },
      ],
    );
  }

  async #isReady(): Promise<boolean> {
    const { items } = JSON.parse(await this.#get('/api/v1/nodes')) as {
      items: { status: { conditions?: { type: string; status: string }[] } }[];
    };
    const ready = items.filter(({ status }) =>
      status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
    );
    if (ready.length < this.#features.nodes) return false;
    // Pods need the account; a controller creates it.
    const { kind } = JSON.parse(await this.#get('/api/v1/namespaces/default/serviceaccounts/default')) as {
      kind: string;
    };
    return kind === 'ServiceAccount';
  }

  async #waitUntil(what: string, hasEnded: () => boolean, check: () => Promise<boolean>): Promise<void> {
    const until = performance.now() + START_TIMEOUT_MS;
    while (!(await check().catch(() => false))) {
      if (hasEnded() || performance.now() > until)
        throw new Error(`the Kubernetes cluster of the tests did not start: ${what}: ${this.#lastLines()}`);
      await pause(POLL_INTERVAL_MS);
    }
  }

  #lastLines(): string {
    return [
      'apiserver.log',
      'etcd.log',
      'controllers.log',
      'node-0.log',
      'node-0/kubelet.log',
      'node-0/containerd.log',
    ]
      .map((file) => join(this.#folder, file))
      .filter((path) => existsSync(path))
      .map((path) => `${path}: ${readFileSync(path, 'utf8').trim().split('\n').slice(-3).join(' | ')}`)
      .join('\n');
  }

  #get(path: string): Promise<string> {
    const file = (name: string): Buffer => readFileSync(join(this.#folder, 'pki', name));
    return new Promise((resolve, reject) => {
      const asking = request(
        this.#server + path,
        { ca: file('ca.crt'), cert: file('admin.crt'), key: file('admin.key'), timeout: 2000, agent: false },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          response.on('end', () => resolve(text)).on('error', reject);
        },
      );
      asking.on('timeout', () => asking.destroy(new Error('no answer')));
      asking.on('error', reject).end();
    });
  }
}

function bridgeName(number: number): string {
  return `berthk${number}`;
}

/** Clusters on one machine have networks of their own; the bridge shows which numbers are taken. */
function claimBridge(): number {
  for (let number = 0; number < MAX_CLUSTERS; number += 1) {
    try {
      execFileSync('ip', ['link', 'add', bridgeName(number), 'type', 'bridge'], { stdio: 'ignore' });
      return number;
    } catch {
      // Taken by another run.
    }
  }
  throw new Error(`${MAX_CLUSTERS} Kubernetes clusters of tests run already, or bridges cannot be made`);
}
