import type { LogLimits } from '../../domain/limits.ts';
import { BerthError } from '../../support/errors.ts';
import { type Clock, fromWall } from '../../support/clock.ts';
import { type ContainerInstance, exitMessages } from '../container-instance.ts';
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
import type { WritableDisk, VolumeSizeReader } from '../disk-guard.ts';
import { OutputLog } from '../logs/output-log.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { type DockerContainer, containerFromInspect } from './docker-container.ts';
import { ContainerOutput } from './container-output.ts';
import { containerDisks } from './docker-disk.ts';
import type { DockerClient } from './client/docker-client.ts';
import type { ContainerStats, InspectedContainer } from './client/docker-objects.ts';
import type { Daemon } from './daemon.ts';
import { startExecution } from './docker-execution.ts';
import { isNotFound, isWrongState } from './client/docker.errors.ts';
import { isListening } from './port-probe.ts';
import { cpuSecondsOf, memoryOf } from './container-usage.ts';

/** How long a found address is cached. */
const ADDRESS_CACHE_TTL_MS = 1000;
/** The longest delay of a timer. */
const MAX_GRACE_MS = 2 ** 31 - 1;
const BYTES_PER_GB = 1024 ** 3;

export interface DockerInstanceOptions {
  daemon: Daemon;
  container: DockerContainer;
  logFolder: string;
  logLimits?: LogLimits | undefined;
  clock: Clock;
  volumeSize?: VolumeSizeReader | undefined;
  /** Called once, when the end is known. */
  onEnded: (instance: DockerInstance) => void;
  /** Called with failures that no caller waits for. */
  onProblem: (what: string, error: unknown) => void;
}

/** One run of an instance, from the moment its container runs. */
export class DockerInstance implements ContainerInstance {
  readonly #deps: DockerInstanceOptions;
  readonly #log: OutputLog;
  readonly #addressCache = new Map<number, { address: InstanceAddress; until: number }>();
  readonly #gone = Promise.withResolvers<void>();
  readonly #cpu: CpuMeter;
  #container: DockerContainer;
  #stopping = false;
  #noSpace: string | undefined;

  constructor(options: DockerInstanceOptions) {
    const { container, clock } = options;
    this.#deps = options;
    this.#container = container;
    this.#cpu = new CpuMeter(0, container.instance.startedAt);
    this.#log = new OutputLog({
      source: new ContainerOutput(options.daemon, container.containerId),
      folder: options.logFolder,
      ...(options.logLimits !== undefined && { bytesPerSecond: options.logLimits.bytesPerSecond }),
      clock,
      onStreamEnd: async () => {
        await this.refresh();
        return this.isRunning;
      },
      onProblem: options.onProblem,
    });
  }

  get id(): string {
    return this.#container.id;
  }

  get containerId(): string {
    return this.#container.containerId;
  }

  /** The network it shares with other instances. */
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

  /** Copies its output to this log from now on. */
  captureOutput(log: SegmentedLog): void {
    this.#log.captureOutput(log);
  }

  /**
   * Reads the state from the daemon. An ended instance stays ended. If the container is gone, `knownExitCode`
   * is used, if there is one.
   */
  async refresh(knownExitCode: number | null = null): Promise<void> {
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
        exitCode: knownExitCode,
        signal: signalOf(knownExitCode),
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
    const noSpace = this.#noSpace === undefined ? [] : [this.#noSpace];
    const messages = exitMessages(this.describe(), [...causesOfExit(this.#container), ...noSpace]);
    await this.#log.finish(messages, this.describe().endedAt ?? this.#deps.clock.now());
  }

  /** Each call has its own timer, so a second call with a shorter grace period ends it sooner. */
  async stop(graceMs: number): Promise<void> {
    if (!this.isRunning) return;
    const abort = new AbortController();
    const failed = Promise.withResolvers<never>();
    // It may reject while nobody waits for it.
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
      await Promise.race([this.#gone.promise, this.#waitForExit(abort.signal), failed.promise]);
    } catch (error) {
      // Let the next call send the signal again.
      this.#stopping = false;
      throw error;
    } finally {
      clearTimeout(killTimer);
      abort.abort();
    }
  }

  /** Waits for the daemon to report the end. */
  async #waitForExit(signal: AbortSignal): Promise<void> {
    try {
      await this.#callDaemon((client) =>
        client.wait(`${this.#path}/wait`, { condition: 'not-running' }, signal),
      );
    } catch (error) {
      if (!isNotFound(error) && !signal.aborted) throw error;
    }
    if (!signal.aborted) await this.refresh();
  }

  /** Removes the container with its disk and anonymous volumes, after its log is complete. */
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
    const notRunning = (error?: unknown): BerthError =>
      new BerthError('state', `${this.id} does not run`, { cause: error });
    if (!this.isRunning) throw notRunning();
    try {
      return await this.#callDaemon((client) => startExecution(client, this.containerId, argv, options));
    } catch (error) {
      throw isWrongState(error) || isNotFound(error) ? notRunning(error) : error;
    }
  }

  async address(port: number): Promise<InstanceAddress | undefined> {
    const { ports, address, gateway } = this.#container;
    const hostPort = ports.get(port);
    if (hostPort === undefined || !this.isRunning) return undefined;
    const now = performance.now();
    const known = this.#addressCache.get(port);
    if (known !== undefined && known.until > now) return known.address;
    this.#addressCache.delete(port);
    if (!(await isListening({ address, gateway, port, hostPort })) || !this.isRunning) return undefined;
    const found = { host: '127.0.0.1', port: hostPort };
    this.#addressCache.set(port, { address: found, until: performance.now() + ADDRESS_CACHE_TTL_MS });
    return found;
  }

  /** Without GPUs, whose usage the engine adds. */
  async usage(): Promise<Omit<InstanceUsage, 'gpus'> | undefined> {
    if (!this.isRunning) return undefined;
    const stats = await this.#callDaemon((client) =>
      client.get<ContainerStats>(`${this.#path}/stats`, { stream: false, 'one-shot': true }),
    ).catch((error: unknown) => (isWrongState(error) ? undefined : ignoreNotFound(error)));
    const at = Date.parse(stats?.read ?? '');
    // An ended container has a timestamp in the year 1.
    if (stats === undefined || !(at > 0)) return undefined;
    return { cpu: this.#cpu.update(cpuSecondsOf(stats), at), memoryInBytes: memoryOf(stats) };
  }

  /** Nothing is written to the log before: that would wait for all of its output. */
  async endForSpace(reason: string): Promise<void> {
    this.#noSpace = reason;
    await this.stop(0);
  }

  measureDisk(): Promise<WritableDisk[]> {
    return this.#callDaemon((client) => containerDisks(client, this.containerId, this.#deps.volumeSize));
  }

  /** Stops managing the instance, which keeps running. */
  async detach(): Promise<void> {
    await this.#log.detach();
  }

  async #signal(signal: string): Promise<void> {
    try {
      await this.#callDaemon((client) => client.post(`${this.#path}/kill`, { query: { signal } }));
    } catch (error) {
      if (!isWrongState(error) && !isNotFound(error)) throw error;
    }
  }

  get #path(): string {
    return `/containers/${this.containerId}`;
  }

  #callDaemon<T>(request: (client: DockerClient) => Promise<T>): Promise<T> {
    return this.#deps.daemon.call(request);
  }
}

/** Undefined if there is no such container. */
export async function inspectContainer(
  daemon: Daemon,
  nameOrId: string,
): Promise<DockerContainer | undefined> {
  const info = await daemon
    .call((client) => client.get<InspectedContainer>(`/containers/${nameOrId}/json`))
    .catch(ignoreNotFound);
  return info === undefined ? undefined : containerFromInspect(info, (at) => fromWall(daemon.clock, at));
}

export async function removeContainer(daemon: Daemon, containerId: string): Promise<void> {
  try {
    await daemon.call((client) => client.delete(`/containers/${containerId}`, { force: true, v: true }));
  } catch (error) {
    // Another removal is in progress or has finished.
    if (isWrongState(error))
      await daemon
        .call((client) => client.wait(`/containers/${containerId}/wait`, { condition: 'removed' }))
        .catch(ignoreNotFound);
    else ignoreNotFound(error);
  }
}

function ignoreNotFound(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

function causesOfExit({ outOfMemory, memoryInBytes }: DockerContainer): string[] {
  const limitInGb = Math.round((10 * memoryInBytes) / BYTES_PER_GB) / 10;
  return outOfMemory ? [`It ran out of memory: it may use ${limitInGb} GB.`] : [];
}
