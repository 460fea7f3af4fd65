import { join, resolve } from 'node:path';
import { type Clock, systemClock } from '../../support/clock.ts';
import { BerthError, notFound, rule } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { Capacity, EngineAbilities, GpuCapacity, InstanceEngine } from '../engine.ts';
import { GpuShelf } from '../gpu-shelf.ts';
import { gpuUsageReader, usageOfHeld } from '../gpu-usage.ts';
import type { Address, Execution, ExecutionOptions, Instance, InstanceEvent, InstanceHandle, InstanceSpec, Usage } from '../instance.ts';
import { KeptLogs } from '../kept-logs.ts';
import { LogBook } from '../logs/log-book.ts';
import type { LogLine, LogQuery } from '../logs/log-line.ts';
import { findNvidiaGpus, type NvidiaFindings } from '../nvidia-smi.ts';
import { PortPool } from '../port-pool.ts';
import { Turns } from '../turns.ts';
import type { Container } from './container.ts';
import { Daemon } from './daemon.ts';
import { DockerInstance, inspect, removeContainer } from './docker-instance.ts';
import { type ContainerChange, Events } from './events.ts';
import { DockerFiles } from './files.ts';
import { capacityOf, type Ground, groundReader } from './ground.ts';
import { referenceProblem } from './image-reference.ts';
import { ownershipFilter, readLabels } from './labels.ts';
import { launch } from './launch.ts';
import { Networks } from './networks.ts';
import { type ContainerNetwork, HOST_NAME_INSIDE, networkOfContainers, urlInside } from './reach.ts';
import { Visits } from './visits.ts';

const SWEEP_LOGS_EVERY_MS = 3_600_000;
const KEEP_LOGS_MS = 7 * 24 * 3_600_000;
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

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

interface ListedContainer {
  Id: string;
  State: string;
  Labels: Record<string, string>;
}

/** A start that is under way. Whoever wishes the same gets this one. */
interface StartAttempt {
  leave: AbortController;
  /** Resolves as soon as it has something to say, or when it has ended without. */
  book: Promise<LogBook | undefined>;
  handle: Promise<InstanceHandle>;
}

export function dockerEngine(parts: DockerEngineParts): DockerEngine {
  return new DockerEngine(parts);
}

/** Runs instances as containers of the Docker daemon on this machine, or of Podman's. */
export class DockerEngine implements InstanceEngine {
  readonly kind = 'docker';
  readonly abilities: EngineAbilities = { images: 'containers', terminal: true, sharesCores: true, networks: 'bridge' };
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
  readonly #instances = new Map<string, DockerInstance>();
  readonly #starts = new Map<string, StartAttempt>();
  readonly #visits: Visits;
  readonly #gpuUsage = gpuUsageReader();
  readonly #listeners = new Set<(event: InstanceEvent) => void>();
  #opening: Promise<void> | undefined;
  #events: Events | undefined;
  #sweeping: NodeJS.Timeout | undefined;

  constructor({ installation, data, host, virtualGpus = [], findGpus = findNvidiaGpus, gpus = new GpuShelf(), clock = systemClock, log, keepLogsMs = KEEP_LOGS_MS }: DockerEngineParts) {
    this.#installation = installation;
    this.#daemon = new Daemon(host);
    this.files = new DockerFiles({
      daemon: this.#daemon,
      containerId: async (id) => {
        const instance = await this.#instance(id);
        if (!instance.isRunning) throw new BerthError('state', `${id} does not run`);
        return instance.containerId;
      },
    });
    this.#ground = groundReader({ daemon: this.#daemon, virtualGpus, findGpus, clock, onProblem: (what, error) => this.#problem(what, error) });
    this.#visits = new Visits({ daemon: this.#daemon, installation, clock });
    this.#gpus = gpus;
    this.#networks = new Networks(this.#daemon, installation);
    this.#clock = clock;
    this.#log = log;
    this.#logs = new KeptLogs(join(resolve(data), 'docker', 'logs'), keepLogsMs, clock);
  }

  /** Whether a daemon answers, told within half a second. */
  available(): Promise<boolean> {
    return this.#daemon.answers();
  }

  /** An address on this machine's loopback as containers have to write it. Any other address stays. */
  async urlForContainers(url: string): Promise<string> {
    return urlInside(url, (await this.#daemon.isPodman()) ? HOST_NAME_INSIDE.podman : HOST_NAME_INSIDE.docker);
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
    await this.#open();
    const ground = await this.#ground();
    return capacityOf(ground, this.#gpus.left(ground.gpus));
  }

  imageProblem(image: string): string | undefined {
    return referenceProblem(image);
  }

  async start(spec: InstanceSpec): Promise<InstanceHandle> {
    const problem = ID.test(spec.id) ? referenceProblem(spec.image) : `${JSON.stringify(spec.id)} is no id for an instance`;
    if (problem !== undefined) throw rule(problem);
    const underway = this.#starts.get(spec.id);
    if (underway !== undefined && !underway.leave.signal.aborted) return underway.handle;
    const { promise: book, resolve: hasBook } = Promise.withResolvers<LogBook | undefined>();
    const leave = new AbortController();
    const handle = this.#attempt(spec, leave.signal, hasBook);
    const attempt = { leave, book, handle };
    this.#starts.set(spec.id, attempt);
    try {
      return await handle;
    } finally {
      hasBook(undefined);
      if (this.#starts.get(spec.id) === attempt) this.#starts.delete(spec.id);
    }
  }

  async #attempt(spec: InstanceSpec, signal: AbortSignal, hasBook: (book: LogBook) => void): Promise<InstanceHandle> {
    await this.#open();
    return this.#turns.run(spec.id, () => this.#start(spec, signal, hasBook));
  }

  async #start(spec: InstanceSpec, signal: AbortSignal, hasBook: (book: LogBook) => void): Promise<InstanceHandle> {
    const { id } = spec;
    signal.throwIfAborted();
    const before = this.#instances.get(id);
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
      this.#instances.delete(id);
    };
    try {
      const container = await launch(spec, { daemon: this.#daemon, installation: this.#installation, ground: this.#ground, gpus: this.#gpus, networks: this.#networks, ports: this.#ports, say, clear, signal, log: this.#log });
      return await this.#begin(container, book);
    } catch (error) {
      await say(`Not started: ${error instanceof Error ? error.message : String(error)}`);
      await book.end();
      if (!this.#instances.has(id)) await this.#logs.age(id);
      throw error;
    }
  }

  /** It may have ended by now, but it ran first, and that is told first. */
  async #begin(container: Container, book: LogBook): Promise<InstanceHandle> {
    const instance = this.#know({ ...container, instance: { ...container.instance, status: 'running', endedAt: null, exitCode: null, signal: null } });
    this.#tellOf(instance);
    instance.attend(book);
    if (container.instance.status === 'exited') await instance.look();
    return instance.handle;
  }

  async adopt(handle: InstanceHandle): Promise<Instance | undefined> {
    await this.#open();
    await this.#turns.idle(handle.id);
    if (handle.engine !== this.kind) return undefined;
    const known = (): DockerInstance | undefined => [this.#instances.get(handle.id)].find((one) => one?.containerId === handle.state['container']);
    if (known() === undefined) await this.#look();
    const instance = known();
    await instance?.look();
    return instance?.describe();
  }

  async stop(id: string, graceMs: number): Promise<void> {
    await this.#open();
    await this.#endStart(this.#starts.get(id), new BerthError('state', `${id} was ended while it started`));
    await this.#turns.idle(id);
    await this.#instances.get(id)?.stop(graceMs);
  }

  async remove(id: string, graceMs = 0): Promise<void> {
    await this.stop(id, graceMs);
    await this.#turns.run(id, async () => {
      const instance = this.#instances.get(id);
      if (instance === undefined) return;
      await instance.stop(0);
      await instance.remove();
      await this.#forget(instance);
      if (instance.network !== undefined) await this.#networks.leave(instance.network);
    });
    await this.#sweepLogs();
  }

  async subnetsInUse(): Promise<string[]> {
    await this.#open();
    return this.#networks.inUse();
  }

  async list(): Promise<Instance[]> {
    await this.#open();
    await this.#look();
    return [...this.#instances.values()].map((instance) => instance.describe());
  }

  watch(listener: (event: InstanceEvent) => void): () => void {
    this.#listeners.add(listener);
    this.#events ??= new Events({
      daemon: this.#daemon,
      installation: this.#installation,
      onChange: (change) => this.#onChange(change),
      onReached: async () => {
        await this.#open();
        await this.#look();
      },
      onProblem: (what, error) => this.#problem(what, error),
    });
    return () => void this.#listeners.delete(listener);
  }

  async *logs(id: string, query: LogQuery = {}, signal?: AbortSignal): AsyncGenerator<LogLine, void, undefined> {
    await this.#open();
    const starting = await this.#starts.get(id)?.book;
    if (starting === undefined) await this.#turns.idle(id);
    const instance = this.#instances.get(id);
    if (starting !== undefined) yield* starting.lines(query, signal);
    else if (instance !== undefined) yield* instance.logs(query, signal);
    else if (ID.test(id)) yield* (await LogBook.read(this.#logs.folder(id))).lines(query, signal);
  }

  async note(id: string, line: string): Promise<void> {
    await this.#open();
    const starting = await this.#starts.get(id)?.book;
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
    const virtual = gpus === null || (await this.#ground()).gpus.some((gpu) => gpu.gpuTypeId === gpus.typeId && gpu.virtual);
    return { ...usage, gpus: await usageOfHeld(gpus, virtual, this.#gpuUsage) };
  }

  async close(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    await Promise.all([...this.#starts.values()].map((attempt) => this.#endStart(attempt, new BerthError('unavailable', 'Berth ends'))));
    await this.#turns.allIdle();
    clearInterval(this.#sweeping);
    await this.#events?.close();
    await Promise.all([...this.#instances.values()].map((instance) => instance.release()));
  }

  async #endStart(attempt: StartAttempt | undefined, reason: BerthError): Promise<void> {
    attempt?.leave.abort(reason);
    // Whoever asked for it is told.
    await attempt?.handle.catch(() => undefined);
  }

  async #instance(id: string): Promise<DockerInstance> {
    await this.#open();
    await this.#turns.idle(id);
    const instance = this.#instances.get(id);
    if (instance === undefined) throw notFound('instance', id);
    return instance;
  }

  /** One that runs, also where another Berth of this installation started it. */
  async #present(id: string): Promise<DockerInstance | undefined> {
    await this.#open();
    const known = this.#instances.get(id);
    return known?.isRunning === true || !ID.test(id) ? known : ((await this.#visits.find(id)) ?? known);
  }

  #open(): Promise<void> {
    const opening = (this.#opening ??= this.#recover());
    opening.catch(() => {
      // The daemon may be there the next time.
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  /** Takes up what an earlier Berth left. A container whose start was cut off is cleared away; nobody was told of it. */
  async #recover(): Promise<void> {
    const containers = await Promise.all((await this.#containers()).map(({ Id: containerId }) => inspect(this.#daemon, containerId)));
    for (const container of containers) {
      if (container === undefined) continue;
      if (container.isNew) await removeContainer(this.#daemon, container.containerId);
      else await this.#takeUp(container);
    }
    await this.#networks.sweep();
    this.#sweeping ??= setInterval(() => void this.#sweepLogs(), SWEEP_LOGS_EVERY_MS).unref();
    await this.#sweepLogs();
  }

  async #takeUp(container: Container): Promise<void> {
    const { id, gpus } = container;
    const instance = this.#know(container);
    if (instance.isRunning) {
      if (gpus !== null) this.#gpus.hold(id, gpus);
      instance.attend(await LogBook.open(this.#logs.folder(id)));
    } else instance.settle().catch((error: unknown) => this.#problem(`the log of ${id} could not be completed`, error));
  }

  /** What the daemon has, against what is known of it. */
  async #look(): Promise<void> {
    const listed = await this.#containers();
    const running = new Set(listed.filter(({ State: state }) => state === 'running').map(({ Id: containerId }) => containerId));
    const there = new Set(listed.map(({ Id: containerId }) => containerId));
    await Promise.all([...this.#instances.values()].map(async (instance) => {
      if (!running.has(instance.containerId)) await instance.look();
      if (!there.has(instance.containerId)) await this.#lost(instance);
    }));
    await this.#takeUpOthers(listed);
  }

  /** Another server that led before may have started some since we looked. */
  #takeUpOthers(listed: readonly ListedContainer[]): Promise<void> {
    return this.#turns.run('', async () => {
      for (const { Id: containerId, Labels: labels } of listed) {
        const { id } = readLabels(labels);
        const isOurs = (): boolean => this.#instances.has(id) || this.#starts.has(id) || this.#turns.isBusy(id);
        if (isOurs()) continue;
        const container = await inspect(this.#daemon, containerId);
        if (container !== undefined && !container.isNew && !isOurs()) await this.#takeUp(container);
      }
    });
  }

  async #onChange({ containerId, isGone, exitCode }: ContainerChange): Promise<void> {
    const instance = [...this.#instances.values()].find((one) => one.containerId === containerId);
    if (instance === undefined) return;
    await instance.look(exitCode);
    if (isGone) await this.#lost(instance);
  }

  /** Somebody else removed the container. What we remove ourselves is taken care of there. */
  #lost(instance: DockerInstance): Promise<void> {
    return this.#turns.run(instance.id, async () => {
      if (this.#instances.get(instance.id) !== instance || (await inspect(this.#daemon, instance.containerId)) !== undefined) return;
      await instance.settle();
      await this.#forget(instance);
    });
  }

  async #forget({ id }: DockerInstance): Promise<void> {
    this.#instances.delete(id);
    await this.#logs.age(id);
  }

  #know(container: Container): DockerInstance {
    const instance = new DockerInstance({
      daemon: this.#daemon,
      container,
      logFolder: this.#logs.folder(container.id),
      clock: this.#clock,
      onEnded: () => {
        this.#gpus.release(instance.id);
        this.#tellOf(instance);
      },
      onProblem: (what, error) => this.#problem(what, error),
    });
    this.#instances.set(instance.id, instance);
    return instance;
  }

  async #containers(): Promise<ListedContainer[]> {
    const containers = await this.#daemon.ask((client) => client.listContainers({ all: true, filters: ownershipFilter(this.#installation) }));
    return containers.filter(({ Labels: labels }) => ID.test(readLabels(labels).id));
  }

  async #sweepLogs(): Promise<void> {
    try {
      await this.#logs.sweep((id) => this.#instances.has(id) || this.#starts.has(id));
    } catch (error) {
      this.#problem('old logs could not be removed', error);
    }
  }

  #tellOf(instance: DockerInstance): void {
    const { id, status, exitCode, signal, startedAt, endedAt } = instance.describe();
    this.#tell({ id, status, exitCode, signal, at: endedAt ?? startedAt });
  }

  #tell(event: InstanceEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #problem(what: string, error: unknown): void {
    this.#log?.warn({ err: error }, what);
  }
}
