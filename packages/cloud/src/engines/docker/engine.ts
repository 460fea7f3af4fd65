import { join, resolve } from 'node:path';
import { type Clock, systemClock } from '../../support/clock.ts';
import { BerthError, notFound, rule } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import {
  type Capacity,
  type EngineAbilities,
  type GpuCapacity,
  type InstanceEngine,
  KEEP_LOGS_MS,
} from '../engine.ts';
import { GpuShelf } from '../gpu-shelf.ts';
import { gpuUsageReader, usageOfHeld } from '../gpu-usage.ts';
import type {
  Address,
  Execution,
  ExecutionOptions,
  Instance,
  InstanceEvent,
  InstanceHandle,
  InstanceSpec,
  Usage,
} from '../instance.ts';
import { KeptLogs } from '../kept-logs.ts';
import { LogBook } from '../logs/log-book.ts';
import type { LogLine, LogQuery } from '../logs/log-line.ts';
import { findNvidiaGpus, type NvidiaFindings } from '../nvidia-smi.ts';
import { PortPool } from '../port-pool.ts';
import { Turns } from '../turns.ts';
import type { Container } from './container.ts';
import { Daemon } from './daemon.ts';
import type { DockerInstance } from './docker-instance.ts';
import { Events } from './events.ts';
import { DockerFiles } from './files.ts';
import { capacityOf, type Ground, groundReader } from './ground.ts';
import { referenceProblem } from './image-reference.ts';
import { isInstanceId } from './instance-id.ts';
import { Inventory } from './inventory.ts';
import { launch } from './launch.ts';
import { Networks } from './networks.ts';
import { type ContainerNetwork, HOST_NAME_INSIDE, networkOfContainers, urlInside } from './reach.ts';
import { StartAttempts } from './start-attempts.ts';
import { Visits } from './visits.ts';

export interface DockerEngineParts {
  /** Names this installation of Berth. Only containers with this name on them are its own. */
  installation: string;
  /** Where logs are kept, below a folder of their own. */
  data: string;
  /** Where the daemon is, in the way of DOCKER_HOST. Without it, DOCKER_HOST says, or else the usual sockets of Docker and Podman are tried. */
  host?: string;
  /** Offered where there is no real GPU. */
  virtualGpus?: readonly GpuCapacity[];
  findGpus?: () => Promise<NvidiaFindings>;
  /** Which GPUs are taken, where other engines run on the same machine. */
  gpus?: GpuShelf;
  clock?: Clock;
  log?: Log;
  /** How long the log of an instance that was removed can be read. */
  keepLogsMs?: number;
}

export function dockerEngine(parts: DockerEngineParts): DockerEngine {
  return new DockerEngine(parts);
}

/** Runs instances as containers of the Docker daemon on this machine, or of Podman's. */
export class DockerEngine implements InstanceEngine {
  readonly kind = 'docker';
  readonly abilities: EngineAbilities = {
    images: 'containers',
    terminal: true,
    sharesCores: true,
    networks: 'bridge',
  };
  readonly files: DockerFiles;
  readonly #installation: string;
  readonly #daemon: Daemon;
  readonly #ground: () => Promise<Ground>;
  readonly #clock: Clock;
  readonly #log: Log | undefined;
  readonly #logs: KeptLogs;
  readonly #gpus: GpuShelf;
  readonly #networks: Networks;
  readonly #ports = new PortPool(process.pid * 64 + 5_000);
  readonly #turns = new Turns();
  readonly #starts = new StartAttempts();
  readonly #inventory: Inventory;
  readonly #visits: Visits;
  readonly #gpuUsage = gpuUsageReader();
  readonly #listeners = new Set<(event: InstanceEvent) => void>();
  #events: Events | undefined;

  constructor({
    installation,
    data,
    host,
    virtualGpus = [],
    findGpus = findNvidiaGpus,
    gpus = new GpuShelf(),
    clock = systemClock,
    log,
    keepLogsMs = KEEP_LOGS_MS,
  }: DockerEngineParts) {
    const daemon = new Daemon(host);
    const onProblem = (what: string, error: unknown): void => this.#problem(what, error);
    this.#installation = installation;
    this.#daemon = daemon;
    this.#clock = clock;
    this.#log = log;
    this.#gpus = gpus;
    this.#logs = new KeptLogs(join(resolve(data), 'docker', 'logs'), keepLogsMs, clock);
    this.#networks = new Networks(daemon, installation);
    this.#ground = groundReader({ daemon, virtualGpus, findGpus, clock, onProblem });
    this.#visits = new Visits({ daemon, installation, clock });
    this.#inventory = new Inventory({
      daemon,
      installation,
      networks: this.#networks,
      gpus,
      logs: this.#logs,
      turns: this.#turns,
      starts: this.#starts,
      clock,
      onEvent: (event) => this.#tell(event),
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
    return this.#daemon.answers();
  }

  /** An address on this machine's loopback as containers have to write it. Any other address stays. */
  async urlForContainers(url: string): Promise<string> {
    return urlInside(
      url,
      (await this.#daemon.isPodman()) ? HOST_NAME_INSIDE.podman : HOST_NAME_INSIDE.docker,
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
    return (await this.#ground()).limitsDisk;
  }

  async capacity(): Promise<Capacity> {
    await this.#inventory.open();
    const ground = await this.#ground();
    return capacityOf(ground, this.#gpus.left(ground.gpus));
  }

  imageProblem(image: string): string | undefined {
    return referenceProblem(image);
  }

  async start(spec: InstanceSpec): Promise<InstanceHandle> {
    const problem = isInstanceId(spec.id)
      ? referenceProblem(spec.image)
      : `${JSON.stringify(spec.id)} is no id for an instance`;
    if (problem !== undefined) throw rule(problem);
    return this.#starts.run(spec.id, async (signal, hasBook) => {
      await this.#inventory.open();
      return this.#turns.run(spec.id, () => this.#start(spec, signal, hasBook));
    });
  }

  async #start(
    spec: InstanceSpec,
    signal: AbortSignal,
    hasBook: (book: LogBook) => void,
  ): Promise<InstanceHandle> {
    const { id } = spec;
    signal.throwIfAborted();
    const before = this.#inventory.get(id);
    await before?.look();
    if (before?.isRunning && !before.isStopping) return before.handle;
    await before?.stop(Infinity);
    await before?.settle();
    this.#tell({ id, status: 'starting', exitCode: null, signal: null, at: this.#clock.now() });
    await this.#logs.keep(id);
    const book = await LogBook.open(this.#logs.folder(id));
    hasBook(book);
    const say = async (line: string): Promise<void> => {
      spec.onProgress?.(line);
      await book.append([{ ts: this.#clock.now(), source: 'system', line }]);
    };
    const clear = async (): Promise<void> => {
      await before?.remove();
      this.#inventory.discard(id);
    };
    try {
      const container = await launch(spec, {
        daemon: this.#daemon,
        installation: this.#installation,
        ground: this.#ground,
        gpus: this.#gpus,
        networks: this.#networks,
        ports: this.#ports,
        say,
        clear,
        signal,
        log: this.#log,
      });
      return await this.#begin(container, book);
    } catch (error) {
      await say(`Not started: ${error instanceof Error ? error.message : String(error)}`);
      await book.end();
      if (this.#inventory.get(id) === undefined) await this.#logs.age(id);
      throw error;
    }
  }

  /** It may have ended by now, but it ran first, and that is told first. */
  async #begin(container: Container, book: LogBook): Promise<InstanceHandle> {
    const instance = this.#inventory.know({
      ...container,
      instance: { ...container.instance, status: 'running', endedAt: null, exitCode: null, signal: null },
    });
    this.#inventory.tellOf(instance);
    instance.attend(book);
    if (container.instance.status === 'exited') await instance.look();
    return instance.handle;
  }

  async adopt(handle: InstanceHandle): Promise<Instance | undefined> {
    await this.#inventory.open();
    await this.#turns.idle(handle.id);
    if (handle.engine !== this.kind) return undefined;
    const known = (): DockerInstance | undefined =>
      [this.#inventory.get(handle.id)].find((one) => one?.containerId === handle.state['container']);
    if (known() === undefined) await this.#inventory.look();
    const instance = known();
    await instance?.look();
    return instance?.describe();
  }

  async stop(id: string, graceMs: number): Promise<void> {
    await this.#inventory.open();
    await this.#starts.end(id, new BerthError('state', `${id} was ended while it started`));
    await this.#turns.idle(id);
    await this.#inventory.get(id)?.stop(graceMs);
  }

  async remove(id: string, graceMs = 0): Promise<void> {
    await this.stop(id, graceMs);
    await this.#turns.run(id, async () => {
      const instance = this.#inventory.get(id);
      if (instance === undefined) return;
      await instance.stop(0);
      await instance.remove();
      await this.#inventory.forget(instance);
      if (instance.network !== undefined) await this.#networks.leave(instance.network);
    });
    await this.#inventory.sweepLogs();
  }

  async forgetLog(id: string): Promise<void> {
    await this.#turns.run(id, async () => {
      const isThere = this.#inventory.get(id) !== undefined || this.#starts.has(id);
      if (isInstanceId(id) && !isThere) await this.#logs.forget(id);
    });
  }

  async subnetsInUse(): Promise<string[]> {
    await this.#inventory.open();
    return this.#networks.inUse();
  }

  async list(): Promise<Instance[]> {
    await this.#inventory.open();
    await this.#inventory.look();
    return this.#inventory.all().map((instance) => instance.describe());
  }

  watch(listener: (event: InstanceEvent) => void): () => void {
    this.#listeners.add(listener);
    this.#events ??= new Events({
      daemon: this.#daemon,
      installation: this.#installation,
      onChange: (change) => this.#inventory.hear(change),
      onReached: async () => {
        await this.#inventory.open();
        await this.#inventory.look();
      },
      onProblem: (what, error) => this.#problem(what, error),
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
    if (starting === undefined) await this.#turns.idle(id);
    const instance = this.#inventory.get(id);
    if (starting !== undefined) yield* starting.lines(query, signal);
    else if (instance !== undefined) yield* instance.logs(query, signal);
    else if (isInstanceId(id)) yield* (await LogBook.read(this.#logs.folder(id))).lines(query, signal);
  }

  async note(id: string, line: string): Promise<void> {
    await this.#inventory.open();
    const starting = await this.#starts.book(id);
    if (starting !== undefined) await starting.append([{ ts: this.#clock.now(), source: 'system', line }]);
    else await (await this.#instance(id)).note(line);
  }

  async exec(id: string, argv: readonly string[], options: ExecutionOptions = {}): Promise<Execution> {
    return ((await this.#present(id)) ?? (await this.#instance(id))).exec(argv, options);
  }

  async address(id: string, port: number): Promise<Address | undefined> {
    return (await this.#present(id))?.address(port);
  }

  async usage(id: string): Promise<Usage | undefined> {
    const instance = await this.#present(id);
    const usage = await instance?.usage();
    if (instance === undefined || usage === undefined) return undefined;
    const { gpus } = instance;
    const virtual =
      gpus === null ||
      (await this.#ground()).gpus.some((gpu) => gpu.gpuTypeId === gpus.typeId && gpu.virtual);
    return { ...usage, gpus: await usageOfHeld(gpus, virtual, this.#gpuUsage) };
  }

  async close(): Promise<void> {
    await this.#inventory.settled();
    await this.#starts.endAll(new BerthError('unavailable', 'Berth ends'));
    await this.#turns.allIdle();
    await this.#events?.close();
    await this.#inventory.close();
  }

  async #instance(id: string): Promise<DockerInstance> {
    await this.#inventory.open();
    await this.#turns.idle(id);
    const instance = this.#inventory.get(id);
    if (instance === undefined) throw notFound('instance', id);
    return instance;
  }

  /** One that runs, also where another Berth of this installation started it. */
  async #present(id: string): Promise<DockerInstance | undefined> {
    await this.#inventory.open();
    const known = this.#inventory.get(id);
    return known?.isRunning === true || !isInstanceId(id) ? known : ((await this.#visits.find(id)) ?? known);
  }

  #tell(event: InstanceEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #problem(what: string, error: unknown): void {
    this.#log?.warn({ err: error }, what);
  }
}
