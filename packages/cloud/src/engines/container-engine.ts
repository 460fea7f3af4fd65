import type { LogLine, LogQuery } from '../domain/log-line.ts';
import { LOG_RETENTION_MS } from '../domain/limits.ts';
import type { EngineKind } from '../domain/placement/engine-capacity.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError, notFound, ruleError } from '../support/errors.ts';
import { KeyedMutex } from '../support/keyed-mutex.ts';
import type { Log } from '../support/log.ts';
import { type DeployedFolders, isDeployedFolder, runnerSpec } from './deployed-folders.ts';
import type { ContainerInstance } from './container-instance.ts';
import { referenceProblem } from './image-reference.ts';
import { isInstanceId } from './instance-id.ts';
import type { InstanceInventory, InstanceInventoryDeps } from './instance-inventory.ts';
import type {
  Execution,
  ExecutionOptions,
  Instance,
  InstanceAddress,
  InstanceEvent,
  InstanceHandle,
  InstanceSpec,
} from './instance.ts';
import { LogRetention } from './logs/log-retention.ts';
import { SegmentedLog } from './logs/segmented-log.ts';
import { StartAttempts } from './start-attempts.ts';

export interface ContainerEngineOptions {
  clock: Clock;
  log: Log | undefined;
  /** The folder with the logs of instances. */
  logFolder: string;
  logRetentionMs?: number | undefined;
  /** How it runs folders that were deployed; without it, it does not. */
  deployedFolders?: DeployedFolders | undefined;
}

/** What a driver is given to start an instance. */
export interface StartContext {
  reportProgress: (line: string) => Promise<void>;
  /** To be called right before the container is created: removes the container of an earlier run. */
  removePrevious: () => Promise<void>;
  /** Cancels the start. */
  signal: AbortSignal;
  /** The log of the instance, which its output is copied to. */
  log: SegmentedLog;
}

/**
 * What the drivers of containers have in common: which instances there are, one operation on an instance at a
 * time, and their logs, which outlive them.
 */
export abstract class ContainerEngine<I extends ContainerInstance> {
  abstract readonly kind: EngineKind;
  protected readonly clock: Clock;
  protected readonly mutex = new KeyedMutex();
  readonly #log: Log | undefined;
  readonly #logs: LogRetention;
  readonly #starts = new StartAttempts();
  readonly #listeners = new Set<(event: InstanceEvent) => void>();
  readonly #deployedFolders: DeployedFolders | undefined;

  constructor({
    clock,
    log,
    logFolder,
    logRetentionMs = LOG_RETENTION_MS,
    deployedFolders,
  }: ContainerEngineOptions) {
    this.clock = clock;
    this.#log = log;
    this.#deployedFolders = deployedFolders;
    this.#logs = new LogRetention(logFolder, logRetentionMs, clock);
  }

  protected abstract readonly inventory: InstanceInventory<I>;
  /** Resolves when the instance runs and is in the inventory. If it fails, nothing is left behind. */
  protected abstract launch(spec: InstanceSpec, context: StartContext): Promise<I>;
  /** Begins to listen for changes; called again, it does nothing. */
  protected abstract listen(): void;
  /** Whether the handle is of this run of the instance. */
  protected abstract isSameRun(instance: I, handle: InstanceHandle): boolean;
  /** A running instance that another Berth server of this installation manages. */
  protected abstract findPeer(id: string): Promise<I | undefined>;
  /** Called after an instance was removed. */
  protected async cleanUpAfter(_instance: I): Promise<void> {}
  protected abstract closeConnections(): Promise<void>;

  protected get inventoryDeps(): InstanceInventoryDeps {
    return {
      logs: this.#logs,
      mutex: this.mutex,
      starts: this.#starts,
      onEvent: (event) => this.#emit(event),
      onProblem: (what, error) => this.logProblem(what, error),
    };
  }

  imageProblem(image: string): string | undefined {
    if (this.#deployedFolders !== undefined && isDeployedFolder(image))
      return this.#deployedFolders.problem(image);
    return referenceProblem(image);
  }

  async start(spec: InstanceSpec): Promise<InstanceHandle> {
    const problem = isInstanceId(spec.id)
      ? this.imageProblem(spec.image)
      : `${JSON.stringify(spec.id)} is no id for an instance`;
    if (problem !== undefined) throw ruleError(problem);
    return this.#starts.run(spec.id, async (signal, onLogOpened) => {
      await this.inventory.open();
      return this.mutex.runExclusive(spec.id, () => this.#start(spec, signal, onLogOpened));
    });
  }

  async #start(
    spec: InstanceSpec,
    signal: AbortSignal,
    onLogOpened: (log: SegmentedLog) => void,
  ): Promise<InstanceHandle> {
    const { id } = spec;
    signal.throwIfAborted();
    const previous = this.inventory.get(id);
    await previous?.refresh();
    if (previous?.isRunning && !previous.isStopping) return previous.handle;
    await previous?.stop(Infinity);
    await previous?.finalizeLog();
    this.#emit({ id, status: 'starting', exitCode: null, signal: null, at: this.clock.now() });
    await this.#logs.retain(id);
    const log = await SegmentedLog.open(this.#logs.folder(id));
    onLogOpened(log);
    const reportProgress = async (line: string): Promise<void> => {
      spec.onProgress?.(line);
      await log.append([{ ts: this.clock.now(), source: 'system', line }]);
    };
    const removePrevious = async (): Promise<void> => {
      await previous?.remove();
      this.inventory.untrack(id);
    };
    try {
      const folders = isDeployedFolder(spec.image) ? this.#deployedFolders : undefined;
      if (folders !== undefined) await reportProgress(`Running ${spec.image} in a runner image.`);
      const container = folders === undefined ? spec : await runnerSpec(spec, folders);
      return (await this.launch(container, { reportProgress, removePrevious, signal, log })).handle;
    } catch (error) {
      await reportProgress(`Not started: ${error instanceof Error ? error.message : String(error)}`);
      await log.end();
      if (this.inventory.get(id) === undefined) await this.#logs.startRetention(id);
      throw error;
    }
  }

  async adopt(handle: InstanceHandle): Promise<Instance | undefined> {
    await this.inventory.open();
    await this.mutex.waitUntilFree(handle.id);
    if (handle.engine !== this.kind) return undefined;
    const known = (): I | undefined =>
      [this.inventory.get(handle.id)].find((one) => one !== undefined && this.isSameRun(one, handle));
    if (known() === undefined) await this.inventory.refresh();
    const instance = known();
    await instance?.refresh();
    return instance?.describe();
  }

  async stop(id: string, graceMs: number): Promise<void> {
    await this.inventory.open();
    await this.#starts.cancel(id, new BerthError('state', `${id} was ended while it started`));
    await this.mutex.waitUntilFree(id);
    await this.inventory.get(id)?.stop(graceMs);
  }

  async remove(id: string, graceMs = 0): Promise<void> {
    await this.stop(id, graceMs);
    await this.mutex.runExclusive(id, async () => {
      const instance = this.inventory.get(id);
      if (instance === undefined) return;
      await instance.stop(0);
      await instance.remove();
      await this.inventory.remove(instance);
      await this.cleanUpAfter(instance);
    });
    await this.inventory.deleteExpiredLogs();
  }

  async deleteLog(id: string): Promise<void> {
    await this.mutex.runExclusive(id, async () => {
      const isThere = this.inventory.get(id) !== undefined || this.#starts.has(id);
      if (isInstanceId(id) && !isThere) await this.#logs.delete(id);
    });
  }

  async list(): Promise<Instance[]> {
    await this.inventory.open();
    await this.inventory.refresh();
    return this.inventory.all().map((instance) => instance.describe());
  }

  watch(listener: (event: InstanceEvent) => void): () => void {
    this.#listeners.add(listener);
    this.listen();
    return () => void this.#listeners.delete(listener);
  }

  async *logs(
    id: string,
    query: LogQuery = {},
    signal?: AbortSignal,
  ): AsyncGenerator<LogLine, void, undefined> {
    await this.inventory.open();
    const startLog = await this.#starts.book(id);
    if (startLog === undefined) await this.mutex.waitUntilFree(id);
    const instance = this.inventory.get(id);
    if (startLog !== undefined) yield* startLog.lines(query, signal);
    else if (instance !== undefined) yield* instance.logs(query, signal);
    else if (isInstanceId(id))
      yield* (await SegmentedLog.openReadOnly(this.#logs.folder(id))).lines(query, signal);
  }

  async logSystemLine(id: string, line: string): Promise<void> {
    await this.inventory.open();
    const startLog = await this.#starts.book(id);
    if (startLog !== undefined) await startLog.append([{ ts: this.clock.now(), source: 'system', line }]);
    else await (await this.known(id)).logSystemLine(line);
  }

  async exec(id: string, argv: readonly string[], options: ExecutionOptions = {}): Promise<Execution> {
    return ((await this.find(id)) ?? (await this.known(id))).exec(argv, options);
  }

  async address(id: string, port: number): Promise<InstanceAddress | undefined> {
    return (await this.find(id))?.address(port);
  }

  async close(): Promise<void> {
    await this.inventory.waitUntilOpened();
    await this.#starts.cancelAll(new BerthError('unavailable', 'the server is stopping'));
    await this.mutex.waitUntilAllFree();
    await this.closeConnections();
    await this.inventory.close();
  }

  /** Rejects if there is no such instance. */
  protected async known(id: string): Promise<I> {
    await this.inventory.open();
    await this.mutex.waitUntilFree(id);
    const instance = this.inventory.get(id);
    if (instance === undefined) throw notFound('instance', id);
    return instance;
  }

  /** A running instance, also one that another Berth server of this installation started. */
  protected async find(id: string): Promise<I | undefined> {
    await this.inventory.open();
    const known = this.inventory.get(id);
    return known?.isRunning === true || !isInstanceId(id) ? known : ((await this.findPeer(id)) ?? known);
  }

  protected logProblem(what: string, error: unknown): void {
    this.#log?.warn({ err: error }, what);
  }

  #emit(event: InstanceEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}
