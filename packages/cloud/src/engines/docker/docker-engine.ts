import { lookup } from 'node:dns/promises';
import { join, resolve } from 'node:path';
import { type Clock, systemClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { FileOwner } from '../../support/file-owner.ts';
import type { Log } from '../../support/log.ts';
import { ContainerEngine, type StartContext } from '../container-engine.ts';
import { type DeployedFolders, isDeployedFolder } from '../deployed-folders.ts';
import type { InstanceEngine } from '../engine.ts';
import type { DiskGuard, VolumeSizeReader } from '../disk-guard.ts';
import { GpuAllocator } from '../gpu-allocator.ts';
import { gpuUsageReader, usageOfAllocation } from '../gpu-usage.ts';
import type { InstanceHandle, InstanceSpec, InstanceUsage } from '../instance.ts';
import { findNvidiaGpus, type NvidiaSmiResult } from '../nvidia-smi.ts';
import { PortPool } from '../port-pool.ts';
import { Daemon } from './daemon.ts';
import type { DockerInstance } from './docker-instance.ts';
import { checkDaemonSpace, daemonDiskReader, dockerDiskGuard } from './docker-disk.ts';
import { DockerEvents } from './docker-events.ts';
import { DockerFiles } from './docker-files.ts';
import { capacityOf, type DockerHostResources, hostResourcesReader } from './docker-host-resources.ts';
import { ContainerInventory } from './container-inventory.ts';
import { launchContainer } from './container-launch.ts';
import { imageLookupProblem } from './image-pull.ts';
import { PulledImages } from './pulled-images.ts';
import { DockerNetworks } from './docker-networks.ts';
import { HostFirewall } from './host-firewall.ts';
import {
  type ContainerNetwork,
  CONTAINER_HOST_NAME,
  networkOfContainers,
  containerUrl,
} from './container-network.ts';
import { PeerContainers } from './peer-containers.ts';
import type {
  AccountIsolation,
  Capacity,
  EngineCapabilities,
  GpuCapacity,
} from '../../domain/placement/engine-capacity.ts';
import {
  CLUSTER_NETWORK_RANGE,
  CONTAINER_NETWORK_RANGE,
  DEFAULT_DISK_RESERVE_BYTES,
} from '../../domain/limits.ts';
import type { LogLimits } from '../../domain/limits.ts';

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
  /** How fast the output of one container is read. */
  logLimits?: LogLimits;
  /** Where the networks of accounts get their addresses. */
  accountRange?: string;
  /** Where the networks of clusters get theirs. */
  clusterRange?: string;
  /** How much of the daemon's disk instances have to leave free. */
  diskReserve?: number;
  /** The sizes of volumes now: they can grow while an instance runs. */
  volumeSize?: VolumeSizeReader;
  /** How it runs folders that were deployed; without it, it does not. */
  deployedFolders?: DeployedFolders | undefined;
}

export function createDockerEngine(options: DockerEngineOptions): DockerEngine {
  return new DockerEngine(options);
}

/** Runs instances as containers of the Docker or Podman daemon on this machine. */
export class DockerEngine extends ContainerEngine<DockerInstance> implements InstanceEngine {
  readonly kind = 'docker';
  readonly capabilities: EngineCapabilities = {
    images: 'containers',
    terminal: true,
    sharesCores: true,
    networks: 'bridge',
  };
  readonly files: DockerFiles;
  protected readonly inventory: ContainerInventory;
  readonly #installation: string;
  readonly #daemon: Daemon;
  readonly #hostResources: () => Promise<DockerHostResources>;
  readonly #log: Log | undefined;
  readonly #gpus: GpuAllocator;
  readonly #networks: DockerNetworks;
  readonly #firewall: HostFirewall;
  readonly #ranges: readonly string[];
  readonly #ports = new PortPool(process.pid * 64 + 5_000);
  readonly #peers: PeerContainers;
  readonly #pulledImages: PulledImages;
  readonly #gpuUsage = gpuUsageReader();
  readonly #diskGuard: DiskGuard;
  readonly #checkSpace: () => Promise<void>;
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
    logRetentionMs,
    logLimits,
    accountRange = CONTAINER_NETWORK_RANGE,
    clusterRange = CLUSTER_NETWORK_RANGE,
    diskReserve = DEFAULT_DISK_RESERVE_BYTES,
    volumeSize,
    deployedFolders,
  }: DockerEngineOptions) {
    super({ clock, log, logRetentionMs, logFolder: join(resolve(data), 'docker', 'logs'), deployedFolders });
    const daemon = new Daemon(host, process.env, clock);
    this.#pulledImages = new PulledImages(join(resolve(data), 'docker', 'pulled-images.json'), clock);
    this.#installation = installation;
    this.#daemon = daemon;
    this.#log = log;
    this.#gpus = gpus;
    this.#ranges = [accountRange, clusterRange];
    this.#firewall = new HostFirewall(installation, log);
    this.#networks = new DockerNetworks({
      daemon,
      installation,
      log,
      accountRange,
      firewall: this.#firewall,
    });
    this.#hostResources = hostResourcesReader({
      daemon,
      virtualGpus,
      findGpus,
      clock,
      onProblem: (what, error) => this.logProblem(what, error),
    });
    this.#peers = new PeerContainers({ daemon, installation, clock });
    this.inventory = new ContainerInventory({
      ...this.inventoryDeps,
      daemon,
      installation,
      networks: this.#networks,
      gpus,
      clock,
      logLimits,
      volumeSize,
    });
    const readDaemonDisk = daemonDiskReader(daemon, async () => (await this.#hostResources()).isThisMachine);
    this.#checkSpace = () => checkDaemonSpace(readDaemonDisk, diskReserve);
    this.#diskGuard = dockerDiskGuard({
      readDaemonDisk,
      data: resolve(data),
      instances: () => this.inventory.all(),
      reserveBytes: diskReserve,
      onEnded: (id, reason) => log?.warn({ instance: id, reason }, 'an instance was ended: no space'),
      onProblem: (what, error) => this.logProblem(what, error),
    });
    this.files = new DockerFiles({
      daemon,
      containerId: async (id) => {
        const instance = await this.known(id);
        if (!instance.isRunning) throw new BerthError('state', `${id} does not run`);
        return instance.containerId;
      },
    });
  }

  /** Asks the daemon, and through it the registry. A deployed folder is in neither. */
  async imageLookupProblem(image: string, registry?: InstanceSpec['registry']): Promise<string | undefined> {
    if (isDeployedFolder(image)) return undefined;
    return imageLookupProblem(this.#daemon, { image, ...(registry !== undefined && { registry }) });
  }

  pruneImages(unusedSince: number, inUse: ReadonlySet<string>): Promise<string[]> {
    return this.#pulledImages.prune(this.#daemon, unusedSince, inUse);
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

  /**
   * Containers reach this server at `url`. Where the firewall is managed, they reach nothing else of this
   * machine.
   */
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

  /** The owner of files in volumes; undefined for the user that runs Berth. */
  async fileOwner(): Promise<FileOwner | undefined> {
    return (await this.#hostResources()).remappedRoot;
  }

  async capacity(): Promise<Capacity> {
    await this.inventory.open();
    const hostResources = await this.#hostResources();
    return capacityOf(hostResources, this.#gpus.withFreeCounts(hostResources.gpus));
  }

  isolation(): Promise<AccountIsolation> {
    return Promise.resolve('containers');
  }

  protected async launch(spec: InstanceSpec, context: StartContext): Promise<DockerInstance> {
    const container = await launchContainer(spec, {
      pulledImages: this.#pulledImages,
      checkSpace: this.#checkSpace,
      ...context,
      daemon: this.#daemon,
      installation: this.#installation,
      hostResources: this.#hostResources,
      gpus: this.#gpus,
      networks: this.#networks,
      ports: this.#ports,
      systemLog: this.#log,
    });
    // It may have ended already; the running status is still reported first.
    const instance = this.inventory.track({
      ...container,
      instance: { ...container.instance, status: 'running', endedAt: null, exitCode: null, signal: null },
    });
    this.#diskGuard.checkSoon();
    this.inventory.emitStatus(instance);
    instance.captureOutput(context.log);
    if (container.instance.status === 'exited') await instance.refresh();
    return instance;
  }

  protected isSameRun(instance: DockerInstance, handle: InstanceHandle): boolean {
    return instance.containerId === handle.state['container'];
  }

  protected findPeer(id: string): Promise<DockerInstance | undefined> {
    return this.#peers.find(id);
  }

  protected override async cleanUpAfter({ network }: DockerInstance): Promise<void> {
    if (network !== undefined) await this.#networks.removeIfEmpty(network);
  }

  async subnetsInUse(): Promise<string[]> {
    await this.inventory.open();
    return this.#networks.subnetsInUse();
  }

  protected listen(): void {
    if (this.#events !== undefined) return;
    this.#diskGuard.start();
    this.#events = new DockerEvents({
      daemon: this.#daemon,
      installation: this.#installation,
      onChange: (change) => this.inventory.handleEvent(change),
      onConnected: async () => {
        await this.inventory.open();
        await this.inventory.refresh();
      },
      onProblem: (what, error) => this.logProblem(what, error),
    });
  }

  async usage(id: string): Promise<InstanceUsage | undefined> {
    const instance = await this.find(id);
    const usage = await instance?.usage();
    if (instance === undefined || usage === undefined) return undefined;
    const { gpus } = instance;
    const virtual =
      gpus === null ||
      (await this.#hostResources()).gpus.some((gpu) => gpu.gpuTypeId === gpus.typeId && gpu.virtual);
    return { ...usage, gpus: await usageOfAllocation(gpus, virtual, this.#gpuUsage) };
  }

  protected async closeConnections(): Promise<void> {
    await this.#diskGuard.close();
    await this.#events?.close();
  }
}
