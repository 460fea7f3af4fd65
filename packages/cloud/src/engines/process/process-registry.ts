import type { LogLimits } from '../../domain/limits.ts';
import type { Clock } from '../../support/clock.ts';
import type { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { VolumeSizeReader } from '../disk-guard.ts';
import type { InstanceEvent, InstanceHandle } from '../instance.ts';
import type { LogRetention } from '../logs/log-retention.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { HostAllocations } from './host-allocations.ts';
import type { InstanceFolder, SavedInstance, StartedProcesses } from './instance-folder.ts';
import { ProcessInstance } from './process-instance.ts';
import { findInstances } from './process-recovery.ts';
import type { RecoveredInstance } from './process-recovery.ts';

interface ProcessRegistryDeps {
  /** The folder with a folder for each instance. */
  path: string;
  mutex: KeyedMutex;
  logs: LogRetention;
  logLimits: LogLimits;
  allocations: HostAllocations;
  clock: Clock;
  volumeSize?: VolumeSizeReader | undefined;
  onProblem(what: string, error: unknown): void;
}

/** The instances that this engine knows, started by this process or adopted from an earlier one. */
export class ProcessRegistry {
  readonly #deps: ProcessRegistryDeps;
  readonly #instances = new Map<string, ProcessInstance>();
  readonly #adopted = new Set<ProcessInstance>();
  readonly #listeners = new Set<(event: InstanceEvent) => void>();

  constructor(deps: ProcessRegistryDeps) {
    this.#deps = deps;
  }

  get(id: string): ProcessInstance | undefined {
    return this.#instances.get(id);
  }

  has(id: string): boolean {
    return this.#instances.has(id);
  }

  delete(id: string): void {
    this.#instances.delete(id);
  }

  values(): ProcessInstance[] {
    return [...this.#instances.values()];
  }

  watch(listener: (event: InstanceEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whether this very run of the instance is known. */
  isTracked(handle: InstanceHandle): boolean {
    const instance = this.#instances.get(handle.id);
    return instance !== undefined && isSame(instance.handle, handle);
  }

  /** Another Berth server may have restarted it since it was adopted here. */
  isForeign(instance: ProcessInstance): boolean {
    return this.#adopted.has(instance) && !instance.supervisorIsAlive;
  }

  /** Running instances come first: they may share mount links with ended ones. */
  async adopt(recovered: readonly RecoveredInstance[]): Promise<void> {
    for (const { isRunning, ...options } of recovered.filter((one) => one.isRunning)) {
      this.#deps.allocations.reserve(options.saved);
      const instance = this.track(options);
      this.#adopted.add(instance);
      instance.captureOutput(
        await SegmentedLog.open(this.#deps.logs.folder(instance.id), this.#deps.logLimits.bytes),
      );
    }
    for (const { isRunning, ...options } of recovered.filter((one) => !one.isRunning))
      await this.track(options).finalize();
  }

  /** Another server that was the leader may have started or removed instances in this folder. */
  refresh(): Promise<void> {
    return this.#deps.mutex.runExclusive('', async () => {
      const found = await findInstances(this.#deps.path);
      const runs = new Map(found.map(({ saved }) => [saved.id, saved.run]));
      for (const [id, instance] of this.#instances) {
        if (this.#deps.mutex.isLocked(id) || runs.get(id) === instance.saved.run) continue;
        await instance.detach();
        this.#adopted.delete(instance);
        this.#deps.allocations.release(instance.saved);
        this.#instances.delete(id);
      }
      await this.adopt(
        found.filter(({ saved }) => !this.#instances.has(saved.id) && !this.#deps.mutex.isLocked(saved.id)),
      );
    });
  }

  track(options: {
    saved: SavedInstance;
    folder: InstanceFolder;
    started: StartedProcesses;
    env?: Readonly<Record<string, string>>;
  }): ProcessInstance {
    const instance = new ProcessInstance({
      ...options,
      logFolder: this.#deps.logs.folder(options.saved.id),
      logLimits: this.#deps.logLimits,
      clock: this.#deps.clock,
      volumeSize: this.#deps.volumeSize,
      onEnded: () => {
        this.#adopted.delete(instance);
        this.#deps.allocations.release(instance.saved);
        this.emitStatus(instance);
      },
      onProblem: this.#deps.onProblem,
    });
    this.#instances.set(instance.id, instance);
    return instance;
  }

  /** The supervisor of an adopted instance is no child of this process: its exit is no event here. */
  checkAdopted(): void {
    for (const instance of this.#adopted) if (!instance.supervisorIsAlive) void instance.onSupervisorExit();
  }

  emitStatus(instance: ProcessInstance): void {
    const { id, status, exitCode, signal, startedAt, endedAt } = instance.describe();
    this.emit({ id, status, exitCode, signal, at: endedAt ?? startedAt });
  }

  emit(event: InstanceEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

function isSame(one: InstanceHandle, other: InstanceHandle): boolean {
  return (
    one.engine === other.engine &&
    one.id === other.id &&
    Object.entries(one.state).every(([name, value]) => other.state[name] === value)
  );
}
