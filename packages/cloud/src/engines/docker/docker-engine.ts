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
import {
  type ContainerNetwork,
  CONTAINER_HOST_NAME,
  networkOfContainers,
  containerUrl,
} from './container-network.ts';
import { StartAttempts } from './start-attempts.ts';
import { PeerContainers } from './peer-containers.ts';
import type { Capacity, EngineCapabilities, GpuCapacity } from '../../domain/placement/engine-capacity.ts';
import { LOG_RETENTION_MS } from '../../domain/limits.ts';

export interface DockerEngineOptions {
  /** Names this installation of Berth. Only containers with this name on them are its own. */
  installation: string;
  /** Where logs are kept, below a folder of their own. */
  data: string;
  /** Where the daemon is, in the way of DOCKER_HOST. Without it, DOCKER_HOST says, or else the usual sockets of Docker and Podman are tried. */
  host?: string;
  /** Offered where there is no real GPU. */
  virtualGpus?: readonly GpuCapacity[];
  findGpus?: () => Promise<NvidiaSmiResult>;
  /** Which GPUs are taken, where other engines run on the same machine. */
  gpus?: GpuAllocator;
  clock?: Clock;
  log?: Log;
  /** How long the log of an instance that was removed can be read. */
  logRetentionMs?: number;
}

export function createDockerEngine(parts: DockerEngineOptions): DockerEngine {
  return new DockerEngine(parts);
}

/** Runs instances as containers of the Docker daemon on this machine, or of Podman's. */
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
  }: DockerEngineOptions) {
    const daemon = new Daemon(host);
    const onProblem = (what: string, error: unknown): void => this.#logProblem(what, error);
    this.#installation = installation;
    this.#daemon = daemon;
    this.#clock = clock;
    this.#log = log;
    this.#gpus = gpus;
    this.#logs = new LogRetention(join(resolve(data), 'docker', 'logs'), logRetentionMs, clock);
    this.#networks = new DockerNetworks(daemon, installation, log);
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

  /** Whether a daemon answers, told within half a second. */
  available(): Promise<boolean> {
    return this.#daemon.isReachable();
  }

  /** An address on this machine's loopback as containers have to write it. Any other address stays. */
  async urlForContainers(url: string): Promise<string> {
    return containerUrl(
      url,
      (await this.#daemon.isPodman()) ? CONTAINER_HOST_NAME.podman : CONTAINER_HOST_NAME.docker,
    );
  }

  /**
   * Where a server that listens on the loopback alone has to listen too, for containers to reach
   * it at `urlForContainers`, and from where they come. Undefined where this machine has no such
   * address: containers in a virtual machine are brought to the loopback, and Podman makes its
   * network with the first container.
   */
  networkOfContainers(): Promise<ContainerNetwork | undefined> {
    return networkOfContainers(this.#daemon);
  }

  /** Whether `containerDiskInGb` is a limit here, or only a number. */
  async limitsContainerDisk(): Promise<boolean> {
    return (await this.#hostResources()).limitsDisk;
  }

  async capacity(): Promise<Capacity> {
    await this.#inventory.open();
    const ground = await this.#hostResources();
    return capacityOf(ground, this.#gpus.withFreeCounts(ground.gpus));
  }

  imageProblem(image: string): string | undefined {
    return referenceProblem(image);
  }

  async start(spec: InstanceSpec): Promise<InstanceHandle> {
    const problem = isInstanceId(spec.id)
      ? referenceProblem(spec.image)
      : `${JSON.stringify(spec.id)} is no id for an instance`;
    if (problem !== undefined) throw ruleError(problem);
    return this.#starts.run(spec.id, async (signal, hasBook) => {
      await this.#inventory.open();
      return this.#mutex.runExclusive(spec.id, () => this.#start(spec, signal, hasBook));
    });
  }

  async #start(
    spec: InstanceSpec,
    signal: AbortSignal,
    hasBook: (book: SegmentedLog) => void,
  ): Promise<InstanceHandle> {
    const { id } = spec;
    signal.throwIfAborted();
    const before = this.#inventory.get(id);
    await before?.refresh();
    if (before?.isRunning && !before.isStopping) return before.handle;
    await before?.stop(Infinity);
    await before?.finalizeLog();
    this.#emit({ id, status: 'starting', exitCode: null, signal: null, at: this.#clock.now() });
    await this.#logs.retain(id);
    const book = await SegmentedLog.open(this.#logs.folder(id));
    hasBook(book);
    const say = async (line: string): Promise<void> => {
      spec.onProgress?.(line);
      await book.append([{ ts: this.#clock.now(), source: 'system', line }]);
    };
    const clear = async (): Promise<void> => {
      await before?.remove();
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
        reportProgress: say,
        removePrevious: clear,
        signal,
        log: this.#log,
      });
      return await this.#begin(container, book);
    } catch (error) {
      await say(`Not started: ${error instanceof Error ? error.message : String(error)}`);
      await book.end();
      if (this.#inventory.get(id) === undefined) await this.#logs.startRetention(id);
      throw error;
    }
  }

  /** It may have ended by now, but it ran first, and that is told first. */
  async #begin(container: DockerContainer, book: SegmentedLog): Promise<InstanceHandle> {
    const instance = this.#inventory.track({
      ...container,
      instance: { ...container.instance, status: 'running', endedAt: null, exitCode: null, signal: null },
    });
    this.#inventory.emitStatus(instance);
    instance.captureOutput(book);
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
    const starting = await this.#starts.book(id);
    if (starting === undefined) await this.#mutex.waitUntilFree(id);
    const instance = this.#inventory.get(id);
    if (starting !== undefined) yield* starting.lines(query, signal);
    else if (instance !== undefined) yield* instance.logs(query, signal);
    else if (isInstanceId(id))
      yield* (await SegmentedLog.openReadOnly(this.#logs.folder(id))).lines(query, signal);
  }

  async logSystemLine(id: string, line: string): Promise<void> {
    await this.#inventory.open();
    const starting = await this.#starts.book(id);
    if (starting !== undefined) await starting.append([{ ts: this.#clock.now(), source: 'system', line }]);
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

  /** One that runs, also where another Berth of this installation started it. */
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
