import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type {
  AccountIsolation,
  Capacity,
  EngineCapabilities,
} from '../../domain/placement/engine-capacity.ts';
import { systemClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { ContainerEngine, type StartContext } from '../container-engine.ts';
import type { EngineConnection, InstanceEngine } from '../engine.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { isInstanceId } from '../instance-id.ts';
import type { Instance, InstanceHandle, InstanceSpec, InstanceUsage } from '../instance.ts';
import { AccountPolicies } from './account-policies.ts';
import { KubernetesClient } from './client/kubernetes-client.ts';
import { ListWatch } from './client/list-watch.ts';
import { lazyClusterAccess } from './client/lazy-cluster-access.ts';
import { clusterCapacity, clusterNodesReader, isUsable } from './cluster-nodes.ts';
import { discardPod, type KubernetesInstance, readPod } from './kubernetes-instance.ts';
import type { NodeObject, PodObject } from './kubernetes-objects.ts';
import {
  type ClusterSettings,
  DEFAULT_CLUSTER_SETTINGS,
  type KubernetesEngineOptions,
} from './kubernetes-options.ts';
import { KubernetesVolumes } from './kubernetes-volumes.ts';
import { PeerPods } from './peer-pods.ts';
import { PodEvents } from './pod-events.ts';
import { PodFiles } from './pod-files.ts';
import { PodInventory } from './pod-inventory.ts';
import { INSTALLATION, labelValue, podName } from './pod-labels.ts';
import { GpuPods } from './gpu-pods.ts';
import { launchPod } from './pod-launch.ts';
import { selectPod } from './pod-selection.ts';
import { PodWaits } from './pod-waits.ts';
import { PortForwards } from './port-forward.ts';
import { TenantObjects } from './tenant-objects.ts';
import { VolumeServerPods } from './volume-server-pods.ts';

/** The API server sends a bookmark every minute. */
const WATCH_FRESH_MS = 75_000;

/** Runs instances as pods of a Kubernetes cluster. */
export class KubernetesEngine extends ContainerEngine<KubernetesInstance> implements InstanceEngine {
  readonly kind = 'kubernetes';
  readonly capabilities: EngineCapabilities = {
    images: 'containers',
    terminal: true,
    sharesCores: false,
    networks: 'names',
  };
  readonly files: PodFiles;
  /** Undefined where volumes are folders. */
  readonly volumes?: KubernetesVolumes;
  protected readonly inventory: PodInventory;
  readonly #client: KubernetesClient;
  readonly #settings: ClusterSettings;
  readonly #installation: string;
  readonly #dataCenterId: string;
  readonly #waits = new PodWaits();
  readonly #events: PodEvents;
  readonly #forwards: PortForwards | undefined;
  readonly #policies: AccountPolicies;
  readonly #tenants: TenantObjects;
  readonly #claims: KubernetesVolumes;
  readonly #volumeServers: VolumeServerPods;
  readonly #nodes: () => Promise<readonly NodeObject[]>;
  readonly #gpuPods: GpuPods;
  readonly #peers: PeerPods;
  readonly #isLeading: (labels?: Instance['labels']) => boolean;
  readonly #isShared: boolean;
  #watch: ListWatch<PodObject> | undefined;

  constructor({
    dataCenterId,
    installation,
    data,
    clock = systemClock,
    log,
    logRetentionMs,
    volumeKey = randomBytes(32),
    deployedFolders,
    isLeading = () => true,
    isShared = false,
    ...settings
  }: KubernetesEngineOptions) {
    super({
      clock,
      log,
      logRetentionMs,
      deployedFolders,
      logFolder: join(resolve(data), 'kubernetes', dataCenterId, 'logs'),
    });
    this.#settings = { ...DEFAULT_CLUSTER_SETTINGS, ...settings };
    this.#installation = installation;
    this.#dataCenterId = dataCenterId;
    this.#client = new KubernetesClient(lazyClusterAccess(this.#settings));
    const { namespace } = this.#settings;
    const shared = { client: this.#client, namespace, installation, dataCenterId };
    this.#forwards = this.#settings.portForwarding ? new PortForwards(this.#client) : undefined;
    this.inventory = new PodInventory({
      ...this.inventoryDeps,
      ...shared,
      clock,
      startTimeoutMs: this.#settings.startTimeoutMs,
      isLeading,
      forwards: this.#forwards,
    });
    this.#isLeading = isLeading;
    this.#isShared = isShared;
    this.#events = new PodEvents(shared);
    this.#peers = new PeerPods({ ...shared, clock, forwards: this.#forwards });
    this.#policies = new AccountPolicies({
      ...shared,
      settings: this.#settings,
      accounts: () => this.#accounts(),
      isLeading,
      onProblem: (what, error) => this.logProblem(what, error),
    });
    this.#tenants = new TenantObjects({ ...shared, settings: this.#settings, policies: this.#policies });
    this.#volumeServers = new VolumeServerPods({
      ...shared,
      settings: this.#settings,
      key: volumeKey,
      forwards: this.#forwards,
    });
    this.#claims = new KubernetesVolumes({
      ...shared,
      settings: this.#settings,
      servers: this.#volumeServers,
      ensureNamespace: () => this.#tenants.ensureNamespace(),
      onProblem: (what, error) => this.logProblem(what, error),
    });
    if (!this.#settings.sharedFolders) this.volumes = this.#claims;
    this.#nodes = clusterNodesReader({
      client: this.#client,
      settings: this.#settings,
      clock,
      onProblem: (what, error) => this.logProblem(what, error),
    });
    this.#gpuPods = new GpuPods({
      client: this.#client,
      namespace,
      gpuResource: this.#settings.gpuResource,
      onProblem: (what, error) => this.logProblem(what, error),
    });
    this.files = new PodFiles(async (id) => (await this.find(id)) ?? (await this.known(id)));
  }

  connection(): EngineConnection {
    return { requests: this.#client.requests, cacheAgeMs: this.#watch?.ageMs };
  }

  /** Instances reach this server at this URL, and it listens at this port. Network policies allow it. */
  allowServer(url: string, listenPort: number | undefined): void {
    this.#policies.serverUrl = url;
    this.#policies.listenPort = listenPort;
  }

  async capacity(): Promise<Capacity> {
    const nodes = await this.#nodes();
    const hasGpus =
      this.#settings.nodePools.length > 0 ||
      nodes.some(({ status }) => this.#settings.gpuResource in (status.allocatable ?? {}));
    return clusterCapacity(nodes, hasGpus ? await this.#gpuPods.list() : [], this.#settings);
  }

  isolation(): Promise<AccountIsolation> {
    return Promise.resolve('containers');
  }

  limitsContainerDisk(): Promise<boolean> {
    return Promise.resolve(true);
  }

  override async stop(id: string, graceMs: number): Promise<void> {
    await super.stop(id, graceMs);
    if (this.inventory.get(id) === undefined) await this.#removeUnknown(id);
  }

  protected async launch(spec: InstanceSpec, context: StartContext): Promise<KubernetesInstance> {
    this.listen();
    const pod = await launchPod(spec, {
      ...context,
      client: this.#client,
      settings: this.#settings,
      installation: this.#installation,
      dataCenterId: this.#dataCenterId,
      waits: this.#waits,
      events: this.#events,
      onProblem: (what, error) => this.logProblem(what, error),
      nodes: async () => (await this.#nodes()).filter(isUsable),
      prepare: (wanted) => this.#tenants.prepare(wanted, this.#claims),
    });
    const instance = this.inventory.track(pod);
    if (instance === undefined) throw new BerthError('unavailable', `the pod of ${spec.id} was changed`);
    this.inventory.emitStatus(instance);
    instance.captureOutput(context.log);
    // It may have ended already; the running status is still reported first.
    instance.update(pod);
    return instance;
  }

  protected listen(): void {
    this.#policies.listen();
    this.#watch ??= new ListWatch<PodObject>({
      client: this.#client,
      path: this.inventory.podsPath,
      query: { labelSelector: this.inventory.selector },
      select: selectPod,
      onList: async (pods) => {
        for (const pod of pods) this.#waits.notify(pod);
        await this.inventory.open();
        await this.inventory.handleList(pods);
        if (this.#isLeading()) for (const pod of pods) await this.#volumeServers.handlePod(pod);
      },
      onChange: async (type, pod) => {
        this.#waits.notify(pod);
        await this.inventory.handleChange(type, pod);
        if (type !== 'DELETED' && this.#isLeading()) await this.#volumeServers.handlePod(pod);
      },
      onProblem: (what, error) => this.logProblem(what, error),
    });
  }

  /** A list of thousands of pods takes a second, here and of the API server. */
  watched(): Promise<Instance[]> | undefined {
    if ((this.#watch?.ageMs ?? Infinity) > WATCH_FRESH_MS) return undefined;
    return this.inventory.open().then(() => this.inventory.all().map((instance) => instance.describe()));
  }

  protected isSameRun(instance: KubernetesInstance, handle: InstanceHandle): boolean {
    return instance.uid === handle.state['uid'];
  }

  /** The watch of the leading server shows all pods. */
  protected async findPeer(id: string): Promise<KubernetesInstance | undefined> {
    return this.#manages(id) || !isInstanceId(id) ? undefined : this.#peers.find(id);
  }

  /** An instance that is not known here may be of a server that shares the cluster. */
  #manages(id: string): boolean {
    const known = this.inventory.get(id);
    if (!this.#isShared) return this.#isLeading();
    return known !== undefined && this.#isLeading(known.details.labels);
  }

  /** What a server knows from the time when it led may be old. */
  protected override find(id: string): Promise<KubernetesInstance | undefined> {
    return this.#manages(id) ? super.find(id) : this.findPeer(id);
  }

  /** Only the leading server copies output to its disk. */
  override async *logs(
    id: string,
    query: LogQuery = {},
    signal?: AbortSignal,
  ): AsyncGenerator<LogLine, void, undefined> {
    const peer = await this.findPeer(id);
    yield* peer === undefined ? super.logs(id, query, signal) : this.#peers.logs(id, query, signal);
  }

  async usage(id: string): Promise<InstanceUsage | undefined> {
    const usage = await (await this.find(id))?.usage();
    return usage === undefined ? undefined : { ...usage, gpus: [] };
  }

  protected async closeConnections(): Promise<void> {
    this.#claims.close();
    await this.#forwards?.close();
    await Promise.all([this.#watch?.close(), this.#gpuPods.close(), this.#policies.close()]);
    this.#client.close();
  }

  /** Those that have pods here. */
  *#accounts(): Generator<string, void> {
    for (const instance of this.inventory.all()) {
      const { account } = instance.describe().labels;
      if (account !== undefined) yield account;
    }
  }

  /** The pod of a start that an earlier Berth process did not finish. */
  async #removeUnknown(id: string): Promise<void> {
    const path = `${this.inventory.podsPath}/${podName(this.#installation, id)}`;
    const pod = await readPod(this.#client, path);
    if (pod?.metadata.labels?.[INSTALLATION] === labelValue(this.#installation))
      await discardPod(this.#client, path, pod);
  }
}
