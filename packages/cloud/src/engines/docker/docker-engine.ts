import { lookup } from 'node:dns/promises';
import { join, resolve } from 'node:path';
import { type Clock, systemClock } from '../../support/clock.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { InstanceEngine } from '../engine.ts';
import { GpuAllocator } from '../gpu-allocator.ts';
import { gpuUsageReader, usageOfAllocation } from '../gpu-usage.ts';
import type {
  InstanceAddress,
  Execution,
  ExecutionOptions,
  Instance,
  InstanceEvent,
  InstanceHandle,
  InstanceSpec,
  InstanceUsage,
} from '../instance.ts';
import { LogRetention } from '../logs/log-retention.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { findNvidiaGpus, type NvidiaSmiResult } from '../nvidia-smi.ts';
import { PortPool } from '../port-pool.ts';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { DockerContainer } from './docker-container.ts';
import { Daemon } from './daemon.ts';
import type { DockerInstance } from './docker-instance.ts';
import { DockerEvents } from './docker-events.ts';
import { DockerFiles } from './docker-files.ts';
import { capacityOf, type DockerHostResources, hostResourcesReader } from './docker-host-resources.ts';
import { referenceProblem } from './image-reference.ts';
import { isInstanceId } from './instance-id.ts';
import { ContainerInventory } from './container-inventory.ts';
import { launchContainer } from './container-launch.ts';
import { DockerNetworks } from './docker-networks.ts';
import { HostFirewall } from './host-firewall.ts';
import {
  type ContainerNetwork,
  CONTAINER_HOST_NAME,
  networkOfContainers,
  containerUrl,
} from './container-network.ts';
import { StartAttempts } from '../start-attempts.ts';
import { PeerContainers } from './peer-containers.ts';
import type {
  AccountIsolation,
  Capacity,
  EngineCapabilities,
  GpuCapacity,
} from '../../domain/placement/engine-capacity.ts';
import { CLUSTER_NETWORK_RANGE, CONTAINER_NETWORK_RANGE, LOG_RETENTION_MS } from '../../domain/limits.ts';

export interface DockerEngineOptions {
  /** The id of this Berth installation. Only containers with its label are managed. */
  installation: string;
  /** The data folder, with the logs in a subfolder. */
  data: string;
  /**
   * The daemon's address in the format of DOCKER_HOST. Default: DOCKER_HOST, then the usual sockets of Docker
   * and Podman.
   */
  host?: string;
  /** Offered where there is no real GPU. */
  virtualGpus?: readonly GpuCapacity[];
  findGpus?: () => Promise<NvidiaSmiResult>;
  /** Shared with the other engines of this machine. */
  gpus?: GpuAllocator;
  clock?: Clock;
  log?: Log;
  /** How long the log of a removed instance is kept. */
  logRetentionMs?: number;
  /** Where the networks of accounts get their addresses. */
  accountRange?: string;
  /** Where the networks of clusters get theirs. */
  clusterRange?: string;
}

export function createDockerEngine(options: DockerEngineOptions): DockerEngine {
  return new DockerEngine(options);
}

/** Runs instances as containers of the Docker or Podman daemon on this machine. */
export class DockerEngine implements InstanceEngine {
  readonly kind = 'docker';
  readonly capabilities: EngineCapabilities = {
    images: 'containers',
    terminal: true,
    sharesCores: true,
    networks: 'bridge',
  };
  readonly files: DockerFiles;
  readonly #installation: string;
  readonly #daemon: Daemon;
  readonly #hostResources: () => Promise<DockerHostResources>;
  readonly #clock: Clock;
  readonly #log: Log | undefined;
  readonly #logs: LogRetention;
  readonly #gpus: GpuAllocator;
  readonly #networks: DockerNetworks;
  readonly #firewall: HostFirewall;
  readonly #ranges: readonly string[];
  readonly #ports = new PortPool(process.pid * 64 + 5_000);
  readonly #mutex = new KeyedMutex();
  readonly #starts = new StartAttempts();
  readonly #inventory: ContainerInventory;
  readonly #peers: PeerContainers;
  readonly #gpuUsage = gpuUsageReader();
  readonly #listeners = new Set<(event: InstanceEvent) => void>();
  #events: DockerEvents | undefined;

  constructor({
    installation,
    data,
    host,
    virtualGpus = [],
    findGpus = findNvidiaGpus,
    gpus = new GpuAllocator(),
    clock = systemClock,
    log,
    logRetentionMs = LOG_RETENTION_MS,
    accountRange = CONTAINER_NETWORK_RANGE,
    clusterRange = CLUSTER_NETWORK_RANGE,
  }: DockerEngineOptions) {
    const daemon = new Daemon(host, process.env, clock);
    const onProblem = (what: string, error: unknown): void => this.#logProblem(what, error);
    this.#installation = installation;
    this.#daemon = daemon;
    this.#clock = clock;
    this.#log = log;
    this.#gpus = gpus;
    this.#logs = new LogRetention(join(resolve(data), 'docker', 'logs'), logRetentionMs, clock);
    this.#ranges = [accountRange, clusterRange];
    this.#firewall = new HostFirewall(installation, log);
    this.#networks = new DockerNetworks({
      daemon,
      installation,
      log,
      accountRange,
      firewall: this.#firewall,
    });
    this.#hostResources = hostResourcesReader({ daemon, virtualGpus, findGpus, clock, onProblem });
    this.#peers = new PeerContainers({ daemon, installation, clock });
    this.#inventory = new ContainerInventory({
      daemon,
      installation,
      networks: this.#networks,
      gpus,
      logs: this.#logs,
      mutex: this.#mutex,
      starts: this.#starts,
      clock,
      onEvent: (event) => this.#emit(event),
      onProblem,
    });
    this.files = new DockerFiles({
      daemon,
      containerId: async (id) => {
        const instance = await this.#instance(id);
        if (!instance.isRunning) throw new BerthError('state', `${id} does not run`);
        return instance.containerId;
      },
    });
  }

  /** Whether a daemon answers within half a second. */
  available(): Promise<boolean> {
    return this.#daemon.isReachable();
  }

  /** Rewrites a loopback URL for containers. Any other URL is unchanged. */
  async urlForContainers(url: string): Promise<string> {
    return containerUrl(
      url,
      (await this.#daemon.isPodman()) ? CONTAINER_HOST_NAME.podman : CONTAINER_HOST_NAME.docker,
    );
  }

  /**
   * The address where a loopback-only server must also listen so that containers reach it at
   * `urlForContainers`, and the subnets they connect from. Undefined if this machine has no such address:
   * containers in a virtual machine are routed to the loopback, and Podman creates its network with the first
   * container.
   */
  async networkOfContainers(): Promise<ContainerNetwork | undefined> {
    const network = await networkOfContainers(this.#daemon);
    return network && { ...network, subnets: [...network.subnets, ...this.#ranges] };
  }

  /** Containers reach this server at `url`. Where the firewall is managed, they reach nothing else of this machine. */
  async allowServerUrl(url: string): Promise<void> {
    const { hostname, port, protocol } = new URL(url);
    const isAlias = Object.values(CONTAINER_HOST_NAME).some((name) => name === hostname);
    const host = isAlias ? (await networkOfContainers(this.#daemon))?.address : hostname;
    const found = host === undefined ? [] : await lookup(host, { all: true, family: 4 }).catch(() => []);
    const number = Number(port) || (protocol === 'https:' ? 443 : 80);
    await this.#networks.allow(found.map(({ address }) => ({ address, port: number })));
  }

  /** Whether `containerDiskInGb` is enforced. */
  async limitsContainerDisk(): Promise<boolean> {
    return (await this.#hostResources()).limitsDisk;
  }

  async capacity(): Promise<Capacity> {
    await this.#inventory.open();
    const hostResources = await this.#hostResources();
    return capacityOf(hostResources, this.#gpus.withFreeCounts(hostResources.gpus));
  }

  isolation(): Promise<AccountIsolation> {
    return Promise.resolve('containers');
  }

  imageProblem(image: string): string | undefined {
    return referenceProblem(image);
  }

  async start(spec: InstanceSpec): Promise<InstanceHandle> {
    const problem = isInstanceId(spec.id)
      ? referenceProblem(spec.image)
      : `${JSON.stringify(spec.id)} is no id for an instance`;
    if (problem !== undefined) throw ruleError(problem);
    return this.#starts.run(spec.id, async (signal, onLogOpened) => {
      await this.#inventory.open();
      return this.#mutex.runExclusive(spec.id, () => this.#start(spec, signal, onLogOpened));
    });
  }

  async #start(
    spec: InstanceSpec,
    signal: AbortSignal,
    onLogOpened: (log: SegmentedLog) => void,
  ): Promise<InstanceHandle> {
    const { id } = spec;
    signal.throwIfAborted();
    const previous = this.#inventory.get(id);
    await previous?.refresh();
    if (previous?.isRunning && !previous.isStopping) return previous.handle;
    await previous?.stop(Infinity);
    await previous?.finalizeLog();
    this.#emit({ id, status: 'starting', exitCode: null, signal: null, at: this.#clock.now() });
    await this.#logs.retain(id);
    const log = await SegmentedLog.open(this.#logs.folder(id));
    onLogOpened(log);
    const reportProgress = async (line: string): Promise<void> => {
      spec.onProgress?.(line);
      await log.append([{ ts: this.#clock.now(), source: 'system', line }]);
    };
    const removePrevious = async (): Promise<void> => {
      await previous?.remove();
      this.#inventory.untrack(id);
    };
    try {
      const container = await launchContainer(spec, {
        daemon: this.#daemon,
        installation: this.#installation,
        hostResources: this.#hostResources,
        gpus: this.#gpus,
        networks: this.#networks,
        ports: this.#ports,
        reportProgress,
        removePrevious,
        signal,
        log: this.#log,
      });
      return await this.#begin(container, log);
    } catch (error) {
      await reportProgress(`Not started: ${error instanceof Error ? error.message : String(error)}`);
      await log.end();
      if (this.#inventory.get(id) === undefined) await this.#logs.startRetention(id);
      throw error;
    }
  }

  /** It may have ended already; the running status is still reported first. */
  async #begin(container: DockerContainer, log: SegmentedLog): Promise<InstanceHandle> {
    const instance = this.#inventory.track({
      ...container,
      instance: { ...container.instance, status: 'running', endedAt: null, exitCode: null, signal: null },
    });
    this.#inventory.emitStatus(instance);
    instance.captureOutput(log);
    if (container.instance.status === 'exited') await instance.refresh();
    return instance.handle;
  }

  async adopt(handle: InstanceHandle): Promise<Instance | undefined> {
    await this.#inventory.open();
    await this.#mutex.waitUntilFree(handle.id);
    if (handle.engine !== this.kind) return undefined;
    const known = (): DockerInstance | undefined =>
      [this.#inventory.get(handle.id)].find((one) => one?.containerId === handle.state['container']);
    if (known() === undefined) await this.#inventory.refresh();
    const instance = known();
    await instance?.refresh();
    return instance?.describe();
  }

  async stop(id: string, graceMs: number): Promise<void> {
    await this.#inventory.open();
    await this.#starts.cancel(id, new BerthError('state', `${id} was ended while it started`));
    await this.#mutex.waitUntilFree(id);
    await this.#inventory.get(id)?.stop(graceMs);
  }

  async remove(id: string, graceMs = 0): Promise<void> {
    await this.stop(id, graceMs);
    await this.#mutex.runExclusive(id, async () => {
      const instance = this.#inventory.get(id);
      if (instance === undefined) return;
      await instance.stop(0);
      await instance.remove();
      await this.#inventory.remove(instance);
      if (instance.network !== undefined) await this.#networks.removeIfEmpty(instance.network);
    });
    await this.#inventory.deleteExpiredLogs();
  }

  async deleteLog(id: string): Promise<void> {
    await this.#mutex.runExclusive(id, async () => {
      const isThere = this.#inventory.get(id) !== undefined || this.#starts.has(id);
      if (isInstanceId(id) && !isThere) await this.#logs.delete(id);
    });
  }

  async subnetsInUse(): Promise<string[]> {
    await this.#inventory.open();
    return this.#networks.subnetsInUse();
  }

  async list(): Promise<Instance[]> {
    await this.#inventory.open();
    await this.#inventory.refresh();
    return this.#inventory.all().map((instance) => instance.describe());
  }

  watch(listener: (event: InstanceEvent) => void): () => void {
    this.#listeners.add(listener);
    this.#events ??= new DockerEvents({
      daemon: this.#daemon,
      installation: this.#installation,
      onChange: (change) => this.#inventory.handleEvent(change),
      onConnected: async () => {
        await this.#inventory.open();
        await this.#inventory.refresh();
      },
      onProblem: (what, error) => this.#logProblem(what, error),
    });
    return () => void this.#listeners.delete(listener);
  }

  async *logs(
    id: string,
    query: LogQuery = {},
    signal?: AbortSignal,
  ): AsyncGenerator<LogLine, void, undefined> {
    await this.#inventory.open();
    const startLog = await this.#starts.book(id);
    if (startLog === undefined) await this.#mutex.waitUntilFree(id);
    const instance = this.#inventory.get(id);
    if (startLog !== undefined) yield* startLog.lines(query, signal);
    else if (instance !== undefined) yield* instance.logs(query, signal);
    else if (isInstanceId(id))
      yield* (await SegmentedLog.openReadOnly(this.#logs.folder(id))).lines(query, signal);
  }

  async logSystemLine(id: string, line: string): Promise<void> {
    await this.#inventory.open();
    const startLog = await this.#starts.book(id);
    if (startLog !== undefined) await startLog.append([{ ts: this.#clock.now(), source: 'system', line }]);
    else await (await this.#instance(id)).logSystemLine(line);
  }

  async exec(id: string, argv: readonly string[], options: ExecutionOptions = {}): Promise<Execution> {
    return ((await this.#find(id)) ?? (await this.#instance(id))).exec(argv, options);
  }

  async address(id: string, port: number): Promise<InstanceAddress | undefined> {
    return (await this.#find(id))?.address(port);
  }

  async usage(id: string): Promise<InstanceUsage | undefined> {
    const instance = await this.#find(id);
    const usage = await instance?.usage();
    if (instance === undefined || usage === undefined) return undefined;
    const { gpus } = instance;
    const virtual =
      gpus === null ||
      (await this.#hostResources()).gpus.some((gpu) => gpu.gpuTypeId === gpus.typeId && gpu.virtual);
    return { ...usage, gpus: await usageOfAllocation(gpus, virtual, this.#gpuUsage) };
  }

  async close(): Promise<void> {
    await this.#inventory.waitUntilOpened();
    await this.#starts.cancelAll(new BerthError('unavailable', 'Berth ends'));
    await this.#mutex.waitUntilAllFree();
    await this.#events?.close();
    await this.#inventory.close();
  }

  async #instance(id: string): Promise<DockerInstance> {
    await this.#inventory.open();
    await this.#mutex.waitUntilFree(id);
    const instance = this.#inventory.get(id);
    if (instance === undefined) throw notFound('instance', id);
    return instance;
  }

  /** A running instance, also one that another Berth server of this installation started. */
  async #find(id: string): Promise<DockerInstance | undefined> {
    await this.#inventory.open();
    const known = this.#inventory.get(id);
    return known?.isRunning === true || !isInstanceId(id) ? known : ((await this.#peers.find(id)) ?? known);
  }

  #emit(event: InstanceEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #logProblem(what: string, error: unknown): void {
    this.#log?.warn({ err: error }, what);
  }
}
