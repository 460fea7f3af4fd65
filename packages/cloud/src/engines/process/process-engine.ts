import { createHash } from 'node:crypto';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setPassable } from '../../support/data-directory.ts';
import { type Clock, systemClock } from '../../support/clock.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import { type Ids, randomIds } from '../../support/ids.ts';
import type { Log } from '../../support/log.ts';
import type { FileOwner } from '../../support/file-owner.ts';
import {
  PROGRAM_FOLDERS,
  PYTHON_WORKER_PACKAGE,
  RUNNABLE_EXAMPLES,
  workerModule,
} from '../../support/program-files.ts';
import { DEFAULT_USER_RANGE } from '../../support/user-range.ts';
import type { InstanceEngine } from '../engine.ts';
import type { DiskGuard } from '../disk-guard.ts';
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
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import { StartAttempts } from '../start-attempts.ts';
import { Cgroups, removeCgroup } from './cgroups.ts';
import { ProcessFiles } from './process-files.ts';
import { HostAllocations } from './host-allocations.ts';
import { ImageEnvironments } from './image-environments.ts';
import { type LocalImagePaths, imageProblem } from './local-images.ts';
import { launchProcess, type LaunchedProcess, type HostResources } from './process-launch.ts';
import type { ProcessInstance } from './process-instance.ts';
import { processDiskGuard } from './process-disk.ts';
import { recoverInstances } from './process-recovery.ts';
import type { ProcessEngineOptions } from './process-engine-options.ts';
import { ProcessHost } from './process-host.ts';
import { ProcessRegistry } from './process-registry.ts';
import { ProcessSweeper } from './process-sweeper.ts';
import { RemovedFolders } from './removed-folders.ts';
import { StartLog } from './start-log.ts';
import { supervisionProblem } from './supervise.ts';
import { findPtyProgram } from './pty.ts';
import type { InstancePython } from './python/python-environments.ts';
import { PeerProcessInstances } from './peer-process-instances.ts';
import type { Isolation } from './isolation/isolation.ts';
import { Tenants } from './isolation/tenant.ts';
import { tenantBuilds } from './isolation/tenant-builds.ts';
import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import type {
  AccountIsolation,
  Capacity,
  EngineCapabilities,
} from '../../domain/placement/engine-capacity.ts';
import {
  DEFAULT_DISK_RESERVE_BYTES,
  DEFAULT_LOG_LIMITS,
  LOG_RETENTION_MS,
  type LogLimits,
} from '../../domain/limits.ts';

/**
 * Adopted instances are polled: their supervisor is not a child of this process, so there is no exit event.
 */
const ADOPTED_POLL_INTERVAL_MS = 250;
const SWEEP_EVERY_MS = 3_600_000;
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * Runs instances as processes of this machine: those of the root account under the user that runs Berth,
 * those of other accounts under a user of their own.
 */
export class ProcessEngine implements InstanceEngine {
  readonly kind = 'process';
  readonly capabilities: EngineCapabilities = {
    images: 'folders',
    terminal: findPtyProgram() !== undefined,
    sharesCores: true,
    networks: 'loopback',
  };
  readonly files = new ProcessFiles((id) => this.#instance(id));
  readonly #host: ProcessHost;
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #log: Log | undefined;
  readonly #data: string | undefined;
  readonly #imagePaths: LocalImagePaths;
  readonly #logs: LogRetention;
  readonly #allocations: HostAllocations;
  readonly #removed: RemovedFolders;
  readonly #mutex = new KeyedMutex();
  readonly #starts = new StartAttempts();
  readonly #environments: ImageEnvironments;
  readonly #instances: ProcessRegistry;
  readonly #sweeper: ProcessSweeper;
  readonly #peers: PeerProcessInstances;
  readonly #gpuUsage = gpuUsageReader();
  readonly #onProblem = (what: string, error: unknown): void => this.#log?.warn({ err: error }, what);
  #opening: Promise<void> | undefined;
  readonly #useCgroups: boolean;
  readonly #logLimits: LogLimits;
  readonly #tenants: Tenants;
  readonly #readable: readonly string[];
  readonly #diskGuard: DiskGuard;
  #cgroups: Cgroups | undefined;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: ProcessEngineOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#ids = options.ids ?? randomIds;
    this.#log = options.log;
    this.#host = new ProcessHost(options, this.#clock);
    this.#allocations = new HostAllocations(options.gpus ?? new GpuAllocator());
    this.#useCgroups = options.useCgroups ?? true;
    this.#logLimits = options.logLimits ?? DEFAULT_LOG_LIMITS;
    this.#data = options.data === undefined ? undefined : resolve(options.data);
    const data = this.#data ?? '';
    this.#imagePaths = {
      images: join(data, 'images'),
      examples: options.examples === undefined ? RUNNABLE_EXAMPLES : options.examples,
      workerModule: options.workerModule ?? workerModule(),
      pythonCache: join(data, 'cache', 'python'),
    };
    this.#tenants = new Tenants({
      setting: options.isolation ?? 'auto',
      range: options.users ?? DEFAULT_USER_RANGE,
      usersFolder: join(data, 'users'),
      ownPorts: options.ownPorts,
      data,
      onProbed: (mode) => {
        if (existsSync(data)) setPassable(data, mode === 'users');
      },
      log: options.log,
    });
    this.#readable = [
      ...PROGRAM_FOLDERS,
      dirname(process.execPath),
      dirname(realpathSync(this.#imagePaths.workerModule)),
      ...(options.readablePaths ?? []),
    ];
    this.#environments = new ImageEnvironments({
      path: join(data, 'python'),
      workerPackage: PYTHON_WORKER_PACKAGE,
      imagePaths: this.#imagePaths,
      deployedImages: options.deployedImages ?? (() => Promise.resolve([])),
      clock: this.#clock,
      ids: this.#ids,
      run: tenantBuilds({
        tenantOf: (accountId) => this.#tenants.startingTenantOf(accountId),
        data,
        readable: () => this.#readable.filter((path) => existsSync(path)),
        ids: this.#ids,
      }),
      ...options.python,
    });
    this.#peers = new PeerProcessInstances((id) => join(this.#instancesPath(), id), this.#clock);
    this.#removed = new RemovedFolders({
      path: this.#instancesPath(),
      ids: this.#ids,
      onProblem: this.#onProblem,
    });
    this.#logs = new LogRetention(
      join(data, 'logs'),
      options.logRetentionMs ?? LOG_RETENTION_MS,
      this.#clock,
    );
    const [mutex, logs, onProblem] = [this.#mutex, this.#logs, this.#onProblem];
    this.#instances = new ProcessRegistry({
      path: this.#instancesPath(),
      mutex,
      logs,
      logLimits: this.#logLimits,
      allocations: this.#allocations,
      clock: this.#clock,
      volumeSize: options.volumeSize,
      onProblem,
    });
    this.#diskGuard = processDiskGuard({
      path: this.#instancesPath(),
      instances: () => this.#instances.values().filter((one) => !this.#instances.isForeign(one)),
      reserveBytes: options.diskReserve ?? DEFAULT_DISK_RESERVE_BYTES,
      onEnded: (id, reason) => this.#log?.warn({ instance: id, reason }, 'an instance was ended: no space'),
      onProblem,
    });
    this.#sweeper = new ProcessSweeper({
      registry: this.#instances,
      mutex,
      logs,
      removed: this.#removed,
      environments: this.#environments,
      onProblem,
    });
  }

  async capacity(): Promise<Capacity> {
    if (this.#unsupportedReason() === undefined) await this.#open();
    return this.#host.capacity(this.#allocations.gpus);
  }

  imageProblem(image: string): string | undefined {
    return imageProblem(image, this.#imagePaths);
  }

  /** It fetches no images, but makes Python environments; which of them are in use it knows itself. */
  async pruneImages(unusedSince: number): Promise<string[]> {
    if (this.#unsupportedReason() !== undefined) return [];
    await this.#open();
    return this.#sweeper.deleteEnvironments(this.#clock.now() - unusedSince);
  }

  accountProblem(accountId: string): string | undefined {
    return this.#tenants.problem(accountId);
  }

  async isolation(): Promise<AccountIsolation> {
    return (await this.#tenants.isolation()).mode;
  }

  /** What an operator should know about the isolation of accounts here. */
  describeIsolation(): Promise<Isolation> {
    return this.#tenants.isolation();
  }

  /** The owner of an account's files; undefined for the user that runs Berth. */
  async fileOwner(accountId: string): Promise<FileOwner | undefined> {
    if ((await this.#tenants.isolation()).mode === 'refused') return undefined;
    return (await this.#tenants.tenantOf(accountId))?.user;
  }

  async start(spec: InstanceSpec): Promise<InstanceHandle> {
    if (!ID.test(spec.id)) throw ruleError(`${JSON.stringify(spec.id)} is not a valid instance id`);
    return this.#starts.run(spec.id, async (signal, onLogOpened) => {
      await this.#open();
      return this.#mutex.runExclusive(spec.id, () => this.#start(spec, signal, onLogOpened));
    });
  }

  async #start(
    spec: InstanceSpec,
    signal: AbortSignal,
    onLogOpened: (log: SegmentedLog) => void,
  ): Promise<InstanceHandle> {
    const existing = this.#instances.get(spec.id);
    if (existing !== undefined && existing.isRunning && !existing.isStopping) return existing.handle;
    await existing?.gone;
    this.#instances.emit({
      id: spec.id,
      status: 'starting',
      exitCode: null,
      signal: null,
      at: this.#clock.now(),
    });
    const startLog = new StartLog({
      id: spec.id,
      logs: this.#logs,
      logBytes: this.#logLimits.bytes,
      clock: this.#clock,
      onOpened: onLogOpened,
      onProgress: spec.onProgress,
    });
    const python = await this.#environments.ensure(spec, startLog, signal);
    spec.onImageReady?.();
    const hostResources = await this.#host.resources();
    const openedLog = await startLog.opened();
    const { ended, log, ...launched } = await this.#launch(spec, hostResources, python, openedLog);
    const instance = this.#instances.track(launched);
    instance.captureOutput(log);
    this.#instances.emitStatus(instance);
    void ended.then(() => instance.onSupervisorExit());
    return instance.handle;
  }

  prepareImage(image: string, accountId: string): void {
    if (this.#unsupportedReason() !== undefined) return;
    this.#environments
      .prepare(image, accountId)
      .catch((error: unknown) => this.#log?.info({ err: error, image }, 'an environment could not be built'));
  }

  async #launch(
    spec: InstanceSpec,
    hostResources: HostResources,
    python: InstancePython | undefined,
    openedLog: SegmentedLog | undefined,
  ): Promise<LaunchedProcess> {
    const deps = {
      path: this.#instancesPath(),
      data: this.#data ?? '',
      readable: this.#readable.filter((path) => existsSync(path)),
      removedFolders: this.#removed,
      imagePaths: this.#imagePaths,
      logs: this.#logs,
      logBytes: this.#logLimits.bytes,
      allocations: this.#allocations,
      cgroups: this.#cgroups,
      python,
      openedLog,
      clock: this.#clock,
      ids: this.#ids,
    };
    try {
      const tenant = await this.#tenants.startingTenantOf(spec.labels['account'] ?? ROOT_ACCOUNT_ID);
      return await launchProcess(spec, hostResources, deps, tenant);
    } catch (error) {
      if (error instanceof BerthError) throw error;
      throw new BerthError('unavailable', `${spec.id} could not be started: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  async adopt(handle: InstanceHandle): Promise<Instance | undefined> {
    await this.#open();
    await this.#mutex.waitUntilFree(handle.id);
    if (!this.#instances.isTracked(handle)) await this.#instances.refresh();
    return this.#instances.isTracked(handle) ? this.#instances.get(handle.id)?.describe() : undefined;
  }

  async stop(id: string, graceMs: number): Promise<void> {
    await this.#open();
    await this.#starts.cancel(id, new BerthError('state', `${id} was ended while it started`));
    await this.#mutex.waitUntilFree(id);
    await this.#instances.get(id)?.stop(graceMs);
  }

  async remove(id: string, graceMs = 0): Promise<void> {
    await this.stop(id, graceMs);
    await this.#mutex.runExclusive(id, async () => {
      const instance = this.#instances.get(id);
      if (instance === undefined) return;
      await instance.stop(0);
      // Before anything is written: the disk may be full.
      await this.#removed.remove(instance.folder);
      await this.#logs.startRetention(id);
      if (instance.saved.cgroup !== null) removeCgroup(instance.saved.cgroup);
      this.#instances.delete(id);
    });
    await this.#sweeper.sweepLogs();
  }

  async deleteLog(id: string): Promise<void> {
    await this.#open();
    await this.#mutex.runExclusive(id, async () => {
      if (ID.test(id) && !this.#instances.has(id)) await this.#logs.delete(id);
    });
  }

  async list(): Promise<Instance[]> {
    await this.#open();
    await this.#instances.refresh();
    return this.#instances.values().map((instance) => instance.describe());
  }

  watch(listener: (event: InstanceEvent) => void): () => void {
    return this.#instances.watch(listener);
  }

  async *logs(
    id: string,
    query: LogQuery = {},
    signal?: AbortSignal,
  ): AsyncGenerator<LogLine, void, undefined> {
    await this.#open();
    if (!ID.test(id)) return;
    const startLog = await this.#starts.book(id);
    if (startLog !== undefined) return yield* startLog.lines(query, signal);
    await this.#mutex.waitUntilFree(id);
    const log = await (this.#instances.get(id)?.openLog() ??
      SegmentedLog.openReadOnly(this.#logs.folder(id)));
    yield* log.lines(query, signal);
  }

  async logSystemLine(id: string, line: string): Promise<void> {
    await (await this.#instance(id)).logSystemLine(line);
  }

  async exec(id: string, argv: readonly string[], options: ExecutionOptions = {}): Promise<Execution> {
    return ((await this.#find(id)) ?? (await this.#instance(id))).exec(argv, options);
  }

  async address(id: string, port: number): Promise<InstanceAddress | undefined> {
    return (await this.#find(id))?.address(port);
  }

  async usage(id: string): Promise<InstanceUsage | undefined> {
    const instance = await this.#find(id);
    const usage = instance?.usage();
    if (instance === undefined || usage === undefined) return undefined;
    const { gpus } = instance.saved;
    const virtual = gpus === null || (await this.#host.machine()).gpus.length === 0;
    return { ...usage, gpus: await usageOfAllocation(gpus, virtual, this.#gpuUsage) };
  }

  async close(): Promise<void> {
    const instances = this.#instancesPath();
    await this.#opening?.catch(() => undefined);
    await this.#diskGuard.close();
    await this.#starts.cancelAll(new BerthError('unavailable', 'the server is stopping'));
    await this.#environments.close();
    await this.#tenants.close(() => existsSync(instances) && readdirSync(instances).length === 0);
    await this.#mutex.waitUntilAllFree();
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#instances.values().map((instance) => instance.detach()));
    this.#cgroups?.close();
  }

  async #instance(id: string): Promise<ProcessInstance> {
    await this.#open();
    await this.#mutex.waitUntilFree(id);
    const instance = this.#instances.get(id);
    if (instance === undefined) throw notFound('instance', id);
    return instance;
  }

  /** A running instance, also one that another Berth server with the same data folder started. */
  async #find(id: string): Promise<ProcessInstance | undefined> {
    await this.#open();
    const known = this.#instances.get(id);
    if (!ID.test(id)) return known;
    return known?.isRunning === true && !this.#instances.isForeign(known)
      ? known
      : (this.#peers.find(id) ?? known);
  }

  /** Why nothing can run here; undefined if it can. */
  #unsupportedReason(): string | undefined {
    return this.#data === undefined
      ? 'this engine was given no folder to run instances in'
      : supervisionProblem();
  }

  #open(): Promise<void> {
    this.#opening ??= this.#recover();
    return this.#opening;
  }

  /** Adopts the instances of an earlier Berth process. */
  async #recover(): Promise<void> {
    const problem = this.#unsupportedReason();
    if (problem !== undefined) throw new BerthError('unavailable', problem);
    await mkdir(this.#instancesPath(), { recursive: true, mode: 0o700 });
    if (this.#useCgroups)
      this.#cgroups = Cgroups.open(
        `berth-${createHash('sha256').update(this.#instancesPath()).digest('hex').slice(0, 12)}`,
      );
    await this.#instances.adopt(await recoverInstances(this.#instancesPath(), this.#removed));
    await this.#sweeper.sweepLogs();
    void this.#sweeper.sweepFolders();
    void this.#sweeper.sweepEnvironments();
    this.#timers = [
      setInterval(() => this.#instances.checkAdopted(), ADOPTED_POLL_INTERVAL_MS),
      setInterval(() => void this.#sweeper.sweep(), SWEEP_EVERY_MS),
    ];
    for (const timer of this.#timers) timer.unref();
    this.#diskGuard.start();
  }

  #instancesPath(): string {
    return join(this.#data ?? '', 'instances');
  }
}
