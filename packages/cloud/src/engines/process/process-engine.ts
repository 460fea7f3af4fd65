import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { FileOwner } from '../../support/file-owner.ts';
import type { InstanceEngine } from '../engine.ts';
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
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { StartAttempts } from '../start-attempts.ts';
import { Cgroups, removeCgroup } from './cgroups.ts';
import { ProcessFiles } from './process-files.ts';
import { imageProblem } from './local-images.ts';
import { createProcessComponents, type ProcessComponents } from './process-components.ts';
import type { ProcessInstance } from './process-instance.ts';
import { recoverInstances } from './process-recovery.ts';
import type { ProcessEngineOptions } from './process-engine-options.ts';
import { supervisionProblem } from './supervise.ts';
import { findPtyProgram } from './pty.ts';
import type { Isolation } from './isolation/isolation.ts';
import type {
  AccountIsolation,
  Capacity,
  EngineCapabilities,
} from '../../domain/placement/engine-capacity.ts';

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
  readonly #parts: ProcessComponents;
  readonly #starts = new StartAttempts();
  readonly #gpuUsage = gpuUsageReader();
  readonly #log: Log | undefined;
  readonly #hasFolder: boolean;
  readonly #useCgroups: boolean;
  #opening: Promise<void> | undefined;
  #cgroups: Cgroups | undefined;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: ProcessEngineOptions) {
    this.#parts = createProcessComponents(options);
    this.#log = options.log;
    this.#hasFolder = options.data !== undefined;
    this.#useCgroups = options.useCgroups ?? true;
  }

  async capacity(): Promise<Capacity> {
    if (this.#unsupportedReason() === undefined) await this.#open();
    return this.#parts.host.capacity(this.#parts.allocations.gpus);
  }

  imageProblem(image: string): string | undefined {
    return imageProblem(image, this.#parts.imagePaths);
  }

  /** It fetches no images, but makes Python environments; which of them are in use it knows itself. */
  async pruneImages(unusedSince: number): Promise<string[]> {
    if (this.#unsupportedReason() !== undefined) return [];
    await this.#open();
    return this.#parts.sweeper.deleteEnvironments(this.#parts.clock.now() - unusedSince);
  }

  accountProblem(accountId: string): string | undefined {
    return this.#parts.tenants.problem(accountId);
  }

  async isolation(): Promise<AccountIsolation> {
    return (await this.#parts.tenants.isolation()).mode;
  }

  /** What an operator should know about the isolation of accounts here. */
  describeIsolation(): Promise<Isolation> {
    return this.#parts.tenants.isolation();
  }

  /** The owner of an account's files; undefined for the user that runs Berth. */
  async fileOwner(accountId: string): Promise<FileOwner | undefined> {
    if ((await this.#parts.tenants.isolation()).mode === 'refused') return undefined;
    return (await this.#parts.tenants.tenantOf(accountId))?.user;
  }

  async start(spec: InstanceSpec): Promise<InstanceHandle> {
    if (!ID.test(spec.id)) throw ruleError(`${JSON.stringify(spec.id)} is not a valid instance id`);
    return this.#starts.run(spec.id, async (signal, onLogOpened) => {
      await this.#open();
      const { mutex, starter, diskGuard } = this.#parts;
      const handle = await mutex.runExclusive(spec.id, () =>
        starter.start(spec, { cgroups: this.#cgroups, signal, onLogOpened }),
      );
      diskGuard.checkSoon();
      return handle;
    });
  }

  prepareImage(image: string, accountId: string): void {
    if (this.#unsupportedReason() !== undefined) return;
    this.#parts.environments
      .prepare(image, accountId)
      .catch((error: unknown) => this.#log?.info({ err: error, image }, 'an environment could not be built'));
  }

  async adopt(handle: InstanceHandle): Promise<Instance | undefined> {
    await this.#open();
    await this.#parts.mutex.waitUntilFree(handle.id);
    if (!this.#parts.registry.isTracked(handle)) await this.#parts.registry.refresh();
    return this.#parts.registry.isTracked(handle)
      ? this.#parts.registry.get(handle.id)?.describe()
      : undefined;
  }

  async stop(id: string, graceMs: number): Promise<void> {
    await this.#open();
    await this.#starts.cancel(id, new BerthError('state', `${id} was ended while it started`));
    await this.#parts.mutex.waitUntilFree(id);
    await this.#parts.registry.get(id)?.stop(graceMs);
  }

  async remove(id: string, graceMs = 0): Promise<void> {
    await this.stop(id, graceMs);
    await this.#parts.mutex.runExclusive(id, async () => {
      const instance = this.#parts.registry.get(id);
      if (instance === undefined) return;
      await instance.stop(0);
      // Before anything is written: the disk may be full.
      await this.#parts.removed.remove(instance.folder);
      await this.#parts.logs.startRetention(id);
      if (instance.saved.cgroup !== null) removeCgroup(instance.saved.cgroup);
      this.#parts.registry.delete(id);
    });
    await this.#parts.sweeper.sweepLogs();
  }

  async deleteLog(id: string): Promise<void> {
    await this.#open();
    await this.#parts.mutex.runExclusive(id, async () => {
      if (ID.test(id) && !this.#parts.registry.has(id)) await this.#parts.logs.delete(id);
    });
  }

  async list(): Promise<Instance[]> {
    await this.#open();
    await this.#parts.registry.refresh();
    return this.#parts.registry.values().map((instance) => instance.describe());
  }

  watch(listener: (event: InstanceEvent) => void): () => void {
    return this.#parts.registry.watch(listener);
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
    await this.#parts.mutex.waitUntilFree(id);
    const log = await (this.#parts.registry.get(id)?.openLog() ??
      SegmentedLog.openReadOnly(this.#parts.logs.folder(id)));
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
    const virtual = gpus === null || (await this.#parts.host.machine()).gpus.length === 0;
    return { ...usage, gpus: await usageOfAllocation(gpus, virtual, this.#gpuUsage) };
  }

  async close(): Promise<void> {
    const instances = this.#parts.path;
    await this.#opening?.catch(() => undefined);
    await this.#parts.diskGuard.close();
    await this.#starts.cancelAll(new BerthError('unavailable', 'the server is stopping'));
    await this.#parts.environments.close();
    await this.#parts.tenants.close(() => existsSync(instances) && readdirSync(instances).length === 0);
    await this.#parts.mutex.waitUntilAllFree();
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#parts.registry.values().map((instance) => instance.detach()));
    this.#cgroups?.close();
  }

  async #instance(id: string): Promise<ProcessInstance> {
    await this.#open();
    await this.#parts.mutex.waitUntilFree(id);
    const instance = this.#parts.registry.get(id);
    if (instance === undefined) throw notFound('instance', id);
    return instance;
  }

  /** A running instance, also one that another Berth server with the same data folder started. */
  async #find(id: string): Promise<ProcessInstance | undefined> {
    await this.#open();
    const known = this.#parts.registry.get(id);
    if (!ID.test(id)) return known;
    return known?.isRunning === true && !this.#parts.registry.isForeign(known)
      ? known
      : (this.#parts.peers.find(id) ?? known);
  }

  /** Why nothing can run here; undefined if it can. */
  #unsupportedReason(): string | undefined {
    return !this.#hasFolder ? 'this engine was given no folder to run instances in' : supervisionProblem();
  }

  #open(): Promise<void> {
    this.#opening ??= this.#recover();
    return this.#opening;
  }

  /** Adopts the instances of an earlier Berth process. */
  async #recover(): Promise<void> {
    const problem = this.#unsupportedReason();
    if (problem !== undefined) throw new BerthError('unavailable', problem);
    await mkdir(this.#parts.path, { recursive: true, mode: 0o700 });
    if (this.#useCgroups)
      this.#cgroups = Cgroups.open(
        `berth-${createHash('sha256').update(this.#parts.path).digest('hex').slice(0, 12)}`,
      );
    await this.#parts.registry.adopt(await recoverInstances(this.#parts.path, this.#parts.removed));
    await this.#parts.sweeper.sweepLogs();
    void this.#parts.sweeper.sweepFolders();
    void this.#parts.sweeper.sweepEnvironments();
    this.#timers = [
      setInterval(() => this.#parts.registry.checkAdopted(), ADOPTED_POLL_INTERVAL_MS),
      setInterval(() => void this.#parts.sweeper.sweep(), SWEEP_EVERY_MS),
    ];
    for (const timer of this.#timers) timer.unref();
    this.#parts.diskGuard.start();
  }
}
