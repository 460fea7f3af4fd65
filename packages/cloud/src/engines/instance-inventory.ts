import type { KeyedMutex } from '../support/keyed-mutex.ts';
import type { ContainerInstance } from './container-instance.ts';
import type { InstanceEvent } from './instance.ts';
import type { LogRetention } from './logs/log-retention.ts';
import type { StartAttempts } from './start-attempts.ts';

const LOG_SWEEP_INTERVAL_MS = 3_600_000;

export interface InstanceInventoryDeps {
  logs: LogRetention;
  /** Serializes the operations on an instance. */
  mutex: KeyedMutex;
  starts: StartAttempts;
  onEvent(event: InstanceEvent): void;
  onProblem(what: string, error: unknown): void;
}

/** The known instances of an engine, kept in sync with what its runtime says. */
export abstract class InstanceInventory<I extends ContainerInstance> {
  readonly #deps: InstanceInventoryDeps;
  readonly #instances = new Map<string, I>();
  #opening: Promise<void> | undefined;
  #sweepTimer: NodeJS.Timeout | undefined;

  constructor(deps: InstanceInventoryDeps) {
    this.#deps = deps;
  }

  /** Adopts the instances of an earlier Berth process. */
  protected abstract recover(): Promise<void>;

  /** Compares the known instances with those of the runtime. */
  abstract refresh(): Promise<void>;

  get(id: string): I | undefined {
    return this.#instances.get(id);
  }

  all(): I[] {
    return [...this.#instances.values()];
  }

  /** Resolves when the instances of an earlier Berth process are adopted. */
  open(): Promise<void> {
    const opening = (this.#opening ??= this.#open());
    opening.catch(() => {
      // Try again at the next call: the runtime may be up by then.
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  async #open(): Promise<void> {
    await this.recover();
    await this.startLogSweep();
  }

  /** Deletes expired logs, now and from time to time. */
  protected async startLogSweep(): Promise<void> {
    if (this.#sweepTimer !== undefined) return;
    this.#sweepTimer = setInterval(() => void this.deleteExpiredLogs(), LOG_SWEEP_INTERVAL_MS).unref();
    await this.deleteExpiredLogs();
  }

  /** Resolves when no open() is in progress. */
  async waitUntilOpened(): Promise<void> {
    await this.#opening?.catch(() => undefined);
  }

  async close(): Promise<void> {
    clearInterval(this.#sweepTimer);
    await Promise.all(this.all().map((instance) => instance.detach()));
  }

  protected add(instance: I): void {
    this.#instances.set(instance.id, instance);
  }

  emitStatus(instance: I): void {
    const { id, status, exitCode, signal, startedAt, endedAt, disrupted } = instance.describe();
    this.#deps.onEvent({
      id,
      status,
      exitCode,
      signal,
      at: endedAt ?? startedAt,
      ...(disrupted !== undefined && { disrupted }),
    });
  }

  /** Forgets an instance that a new one replaces. */
  untrack(id: string): void {
    this.#instances.delete(id);
  }

  /** Forgets a removed instance and starts the retention of its log. */
  async remove({ id }: I): Promise<void> {
    this.#instances.delete(id);
    await this.#deps.logs.startRetention(id);
  }

  /** Whether this process manages the instance, or is about to. */
  protected isManaged(id: string): boolean {
    return this.#instances.has(id) || this.isBusy(id);
  }

  /** Whether the instance is being started, stopped or removed. */
  protected isBusy(id: string): boolean {
    const { starts, mutex } = this.#deps;
    return starts.has(id) || mutex.isLocked(id);
  }

  async deleteExpiredLogs(): Promise<void> {
    const { logs, starts, onProblem } = this.#deps;
    try {
      await logs.deleteExpired((id) => this.#instances.has(id) || starts.has(id));
    } catch (error) {
      onProblem('expired logs could not be deleted', error);
    }
  }
}
