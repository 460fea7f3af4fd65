import type Docker from 'dockerode';
import { BerthError } from '../../support/errors.ts';
import type { Clock } from '../../support/clock.ts';
import { CpuMeter } from '../cpu-meter.ts';
import { signalOf } from '../exit-code.ts';
import type { GpuAllocation } from '../gpu-allocator.ts';
import type {
  InstanceAddress,
  Execution,
  ExecutionOptions,
  Instance,
  InstanceHandle,
  InstanceUsage,
} from '../instance.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { type DockerContainer, containerFromInspect } from './docker-container.ts';
import { ContainerLog } from './container-log.ts';
import type { Daemon } from './daemon.ts';
import { startExecution } from './docker-execution.ts';
import { isNotFound, isWrongState } from './docker.errors.ts';
import { isListening } from './port-probe.ts';
import { cpuSecondsOf, memoryOf, type ContainerStats } from './container-usage.ts';

/** How long an address that was found is taken for granted. */
const ADDRESS_CACHE_TTL_MS = 1000;
/** The most that a timer can wait. */
const MAX_GRACE_MS = 2 ** 31 - 1;
const BYTES_PER_GB = 1024 ** 3;

export interface DockerInstanceOptions {
  daemon: Daemon;
  container: DockerContainer;
  logFolder: string;
  clock: Clock;
  /** Told once, when it is known that it has ended. */
  onEnded: (instance: DockerInstance) => void;
  /** Told of what could not be done and has nobody to be told otherwise. */
  onProblem: (what: string, error: unknown) => void;
}

/** One run of an instance, from when its container runs. */
export class DockerInstance {
  readonly #deps: DockerInstanceOptions;
  readonly #log: ContainerLog;
  readonly #found = new Map<number, { address: InstanceAddress; until: number }>();
  readonly #gone = Promise.withResolvers<void>();
  readonly #cpu: CpuMeter;
  #container: DockerContainer;
  #stopping = false;

  constructor(parts: DockerInstanceOptions) {
    const { container, clock } = parts;
    this.#deps = parts;
    this.#container = container;
    this.#cpu = new CpuMeter(0, container.instance.startedAt);
    this.#log = new ContainerLog({
      daemon: parts.daemon,
      containerId: container.containerId,
      folder: parts.logFolder,
      clock,
      onStreamEnd: async () => {
        await this.refresh();
        return this.isRunning;
      },
      onProblem: parts.onProblem,
    });
  }

  get id(): string {
    return this.#container.id;
  }

  get containerId(): string {
    return this.#container.containerId;
  }

  /** The network that it shares with others. */
  get network(): string | undefined {
    return this.#container.network;
  }

  get handle(): InstanceHandle {
    return this.#container.instance.handle;
  }

  get gpus(): GpuAllocation | null {
    return this.#container.gpus;
  }

  get isRunning(): boolean {
    return this.#container.instance.status === 'running';
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  describe(): Instance {
    return this.#container.instance;
  }

  /** Takes its output down from now on, into this log. */
  captureOutput(book: SegmentedLog): void {
    this.#log.captureOutput(book);
  }

  /** Asks the daemon how it is. One that has ended stays so. Where its container is gone already, it ended with the code that was told, if one was. */
  async refresh(toldExitCode: number | null = null): Promise<void> {
    if (!this.isRunning) return;
    const now = await inspectContainer(this.#deps.daemon, this.containerId);
    if (now?.instance.status === 'exited') this.#handleExit(now);
    if (now !== undefined) return;
    this.#handleExit({
      ...this.#container,
      instance: {
        ...this.describe(),
        status: 'exited',
        endedAt: this.#deps.clock.now(),
        exitCode: toldExitCode,
        signal: signalOf(toldExitCode),
      },
    });
  }

  #handleExit(container: DockerContainer): void {
    if (!this.isRunning) return;
    this.#container = container;
    this.#deps.onEnded(this);
    this.#gone.resolve();
    this.finalizeLog().catch((error: unknown) =>
      this.#deps.onProblem(`the log of ${this.id} could not be completed`, error),
    );
  }

  /** Completes the log of a run that has ended. */
  async finalizeLog(): Promise<void> {
    await this.#log.finish(exitMessages(this.#container), this.describe().endedAt ?? this.#deps.clock.now());
  }

  /** A second call with a shorter grace period ends it sooner: each has its own timer. */
  async stop(graceMs: number): Promise<void> {
    if (!this.isRunning) return;
    const leave = new AbortController();
    const failed = Promise.withResolvers<never>();
    // It may fail before or after anybody waits for it.
    failed.promise.catch(() => undefined);
    const killTimer = setTimeout(
      () => void this.#signal('SIGKILL').catch((error: unknown) => failed.reject(error)),
      Math.min(graceMs, MAX_GRACE_MS),
    );
    try {
      if (!this.#stopping) {
        this.#stopping = true;
        this.logSystemLine(`Asked to end, within ${graceMs / 1000} s.`).catch((error: unknown) =>
          this.#deps.onProblem(`the log of ${this.id} could not be written`, error),
        );
        if (graceMs > 0) await this.#signal(this.#container.stopSignal);
      }
      await Promise.race([this.#gone.promise, this.#seenEnd(leave.signal), failed.promise]);
    } catch (error) {
      // The next one asks again.
      this.#stopping = false;
      throw error;
    } finally {
      clearTimeout(killTimer);
      leave.abort();
    }
  }

  /** Asks the daemon to tell the end. */
  async #seenEnd(signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.daemon.callWithoutTimeout((client) =>
        client.getContainer(this.containerId).wait({ condition: 'not-running', abortSignal: signal }),
      );
    } catch (error) {
      if (!isNotFound(error) && !signal.aborted) throw error;
    }
    if (!signal.aborted) await this.refresh();
  }

  /** The container with its disk and its nameless volumes. Its log is complete before. */
  async remove(): Promise<void> {
    await this.finalizeLog();
    await removeContainer(this.#deps.daemon, this.containerId);
  }

  async *logs(query: LogQuery, signal: AbortSignal | undefined): AsyncGenerator<LogLine, void, undefined> {
    if (!this.isRunning) await this.finalizeLog();
    yield* this.#log.lines(query, signal);
  }

  logSystemLine(line: string): Promise<void> {
    return this.#log.logSystemLine(line);
  }

  async exec(argv: readonly string[], options: ExecutionOptions): Promise<Execution> {
    const idle = (error?: unknown): BerthError =>
      new BerthError('state', `${this.id} does not run`, { cause: error });
    if (!this.isRunning) throw idle();
    try {
      return await this.#ask((container) => startExecution(container, argv, options));
    } catch (error) {
      throw isWrongState(error) || isNotFound(error) ? idle(error) : error;
    }
  }

  async address(port: number): Promise<InstanceAddress | undefined> {
    const { ports, address, gateway } = this.#container;
    const hostPort = ports.get(port);
    if (hostPort === undefined || !this.isRunning) return undefined;
    const now = performance.now();
    const known = this.#found.get(port);
    if (known !== undefined && known.until > now) return known.address;
    this.#found.delete(port);
    if (!(await isListening({ address, gateway, port, hostPort })) || !this.isRunning) return undefined;
    const found = { host: '127.0.0.1', port: hostPort };
    this.#found.set(port, { address: found, until: performance.now() + ADDRESS_CACHE_TTL_MS });
    return found;
  }

  /** Without its GPUs, of which the machine knows. */
  async usage(): Promise<Omit<InstanceUsage, 'gpus'> | undefined> {
    if (!this.isRunning) return undefined;
    const stats = await this.#ask(
      (container) => container.stats({ stream: false, 'one-shot': true }) as Promise<ContainerStats>,
    ).catch((error: unknown) => (isWrongState(error) ? undefined : ignoreNotFound(error)));
    const at = Date.parse(stats?.read ?? '');
    // One that does not run any more is counted in the year 1.
    if (stats === undefined || !(at > 0)) return undefined;
    return { cpu: this.#cpu.update(cpuSecondsOf(stats), at), memoryInBytes: memoryOf(stats) };
  }

  /** Lets go of it; it goes on. */
  async detach(): Promise<void> {
    await this.#log.detach();
  }

  async #signal(signal: string): Promise<void> {
    try {
      await this.#ask((container) => container.kill({ signal }));
    } catch (error) {
      if (!isWrongState(error) && !isNotFound(error)) throw error;
    }
  }

  #ask<T>(question: (container: Docker.Container) => Promise<T>): Promise<T> {
    return this.#deps.daemon.call((client) => question(client.getContainer(this.containerId)));
  }
}

/** Undefined where there is none. */
export async function inspectContainer(
  daemon: Daemon,
  nameOrId: string,
): Promise<DockerContainer | undefined> {
  const info = await daemon.call((client) => client.getContainer(nameOrId).inspect()).catch(ignoreNotFound);
  return info === undefined ? undefined : containerFromInspect(info);
}

export async function removeContainer(daemon: Daemon, containerId: string): Promise<void> {
  try {
    await daemon.call((client) => client.getContainer(containerId).remove({ force: true, v: true }));
  } catch (error) {
    // Somebody else is at it, or was.
    if (isWrongState(error))
      await daemon
        .call((client) => client.getContainer(containerId).wait({ condition: 'removed' }))
        .catch(ignoreNotFound);
    else ignoreNotFound(error);
  }
}

function ignoreNotFound(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

function exitMessages({
  instance: { exitCode, signal },
  outOfMemory,
  memoryInBytes,
}: DockerContainer): string[] {
  if (exitCode === null) return ['Ended, and nobody saw how.'];
  const end = `Ended with exit code ${exitCode}${signal === null ? '' : ` (${signal})`}.`;
  return outOfMemory
    ? [`It ran out of memory: it may use ${Math.round((10 * memoryInBytes) / BYTES_PER_GB) / 10} GB.`, end]
    : [end];
}
