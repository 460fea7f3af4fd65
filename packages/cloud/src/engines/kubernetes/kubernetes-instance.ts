import { setTimeout as pause } from 'node:timers/promises';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { type Clock, fromWall } from '../../support/clock.ts';
import { type ContainerInstance, exitMessages } from '../container-instance.ts';
import { CpuMeter } from '../cpu-meter.ts';
import { signalOf } from '../exit-code.ts';
import type { Execution, ExecutionOptions, Instance, InstanceAddress, InstanceHandle } from '../instance.ts';
import { OutputLog } from '../logs/output-log.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';
import { connectionOpens } from '../port-connection.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { isConflict, isNotFound, toKubernetesError } from './client/kubernetes.errors.ts';
import type { PodObject } from './kubernetes-objects.ts';
import { notRunning, runInPod, startPodExecution } from './pod-execution.ts';
import type { InstanceDetails } from './pod-labels.ts';
import { PodOutput } from './pod-output.ts';
import type { PortForwards } from './port-forward.ts';
import { selectPod } from './pod-selection.ts';
import { isLost, podState } from './pod-state.ts';
import { parseUsage, USAGE_COMMAND } from './pod-usage.ts';

const ADDRESS_CACHE_TTL_MS = 1000;
/** A grace period of zero would delete the pod while its processes still run. */
const MIN_GRACE_SECONDS = 1;
const MAX_GRACE_SECONDS = 2 ** 31 - 1;
/** The watch reports the end; this is for the time when it is cut off. */
const END_POLL_MS = 2000;

export interface KubernetesInstanceOptions {
  client: KubernetesClient;
  namespace: string;
  pod: PodObject;
  details: InstanceDetails;
  logFolder: string;
  clock: Clock;
  /** Reaches ports through the API server; without it, by the pod's address. */
  forwards: PortForwards | undefined;
  /** Called once, when the end is known. */
  onEnded: (instance: KubernetesInstance) => void;
  /** Called with failures that no caller waits for. */
  onProblem: (what: string, error: unknown) => void;
}

/** One run of an instance, from the moment its pod runs. */
export class KubernetesInstance implements ContainerInstance {
  readonly details: InstanceDetails;
  readonly #deps: Omit<KubernetesInstanceOptions, 'pod'>;
  readonly #log: OutputLog;
  readonly #path: string;
  readonly #gone = Promise.withResolvers<void>();
  readonly #addressCache = new Map<number, { address: InstanceAddress; until: number }>();
  readonly #cpu: CpuMeter;
  #pod: PodObject;
  #instance: Instance;
  #causes: string[] = [];
  #stopping = false;
  /** The pod is not in the cluster any more. */
  #isDeleted = false;

  constructor(options: KubernetesInstanceOptions) {
    const { pod, ...deps } = options;
    const { client, namespace, details, clock } = deps;
    this.details = details;
    this.#deps = deps;
    this.#pod = pod;
    this.#path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}`;
    this.#instance = this.#describe(pod, 'running');
    this.#cpu = new CpuMeter(0, this.#instance.startedAt);
    this.#log = new OutputLog({
      source: new PodOutput(client, this.#path, pod.metadata.uid, () => isLost(this.#pod)),
      folder: options.logFolder,
      clock,
      onStreamEnd: async () => {
        await this.refresh();
        return this.isRunning;
      },
      onProblem: options.onProblem,
    });
  }

  get id(): string {
    return this.details.id;
  }

  get uid(): string {
    return this.#pod.metadata.uid;
  }

  get podName(): string {
    return this.#pod.metadata.name;
  }

  get handle(): InstanceHandle {
    return this.#instance.handle;
  }

  get isRunning(): boolean {
    return this.#instance.status === 'running';
  }

  /** Whether its pod is gone from the cluster. */
  get isDeleted(): boolean {
    return this.#isDeleted;
  }

  get isStopping(): boolean {
    return this.#stopping || this.#pod.metadata.deletionTimestamp !== undefined;
  }

  describe(): Instance {
    return this.#instance;
  }

  captureOutput(log: SegmentedLog): void {
    this.#log.captureOutput(log);
  }

  async refresh(): Promise<void> {
    if (!this.isRunning && this.#isDeleted) return;
    this.update(await readPod(this.#deps.client, this.#path, this.uid));
  }

  /**
   * Takes over what the cluster says; undefined means that the pod is gone. An ended instance stays ended.
   */
  update(pod: PodObject | undefined): void {
    if (pod === undefined) {
      this.#isDeleted = true;
      if (this.isRunning) this.#end(this.#pod);
      return;
    }
    if (pod.metadata.uid !== this.uid || isOlder(pod, this.#pod)) return;
    this.#pod = pod;
    if (this.isRunning && podState(pod).status === 'exited') this.#end(pod);
  }

  #end(pod: PodObject): void {
    this.#instance = this.#describe(pod, 'exited');
    this.#causes = podState(pod).reasons;
    this.#deps.onEnded(this);
    void this.#deps.forwards?.close(this.#path);
    this.#gone.resolve();
    this.finalizeLog().catch((error: unknown) =>
      this.#deps.onProblem(`the log of ${this.id} could not be completed`, error),
    );
  }

  #describe(pod: PodObject, status: 'running' | 'exited'): Instance {
    const { clock } = this.#deps;
    const { id, image, labels } = this.details;
    const state = podState(pod);
    const toTime = (at: number): number => fromWall(clock, at);
    const startedAt = toTime(state.startedAt ?? Date.parse(pod.metadata.creationTimestamp ?? ''));
    const exitCode = status === 'exited' ? state.exitCode : null;
    return {
      id,
      labels,
      image,
      handle: { engine: 'kubernetes', id, state: { pod: pod.metadata.name, uid: pod.metadata.uid } },
      status,
      startedAt,
      endedAt:
        status === 'running'
          ? null
          : Math.max(startedAt, state.endedAt === null ? clock.now() : toTime(state.endedAt)),
      ...(labels['cluster'] !== undefined &&
        pod.status?.podIP !== undefined && { networkAddress: pod.status.podIP }),
      exitCode,
      signal: signalOf(exitCode),
      ...(status === 'exited' && state.isDisrupted && { disrupted: state.reasons[0] ?? 'It was disrupted.' }),
    };
  }

  async finalizeLog(): Promise<void> {
    const messages = exitMessages(this.#instance, this.#causes);
    await this.#log.finish(messages, this.#instance.endedAt ?? this.#deps.clock.now());
  }

  /**
   * Deletes the pod: the kubelet signals its processes and kills them after the grace period, also while
   * Berth is down.
   */
  async stop(graceMs: number): Promise<void> {
    if (!this.isRunning) return;
    const isRepeated = this.#stopping;
    this.#stopping = true;
    try {
      if (!isRepeated)
        this.logSystemLine(`Asked to end, within ${graceMs / 1000} s.`).catch((error: unknown) =>
          this.#deps.onProblem(`the log of ${this.id} could not be written`, error),
        );
      if (!isRepeated || graceMs !== Infinity) await this.#delete(toGraceSeconds(graceMs));
      while (this.isRunning) {
        await Promise.race([this.#gone.promise, pause(END_POLL_MS, undefined, { ref: false })]);
        await this.refresh();
      }
    } catch (error) {
      // Let the next call ask again.
      this.#stopping = isRepeated;
      throw error;
    }
  }

  /** Its processes have ended, so the pod can be deleted at once. */
  async remove(): Promise<void> {
    await this.finalizeLog();
    if (!this.#isDeleted) await this.#delete(0);
    this.#isDeleted = true;
  }

  async #delete(gracePeriodSeconds: number): Promise<void> {
    await deletePod(this.#deps.client, this.#path, this.uid, gracePeriodSeconds);
  }

  async *logs(query: LogQuery, signal: AbortSignal | undefined): AsyncGenerator<LogLine, void, undefined> {
    if (!this.isRunning) await this.finalizeLog();
    yield* this.#log.lines(query, signal);
  }

  logSystemLine(line: string): Promise<void> {
    return this.#log.logSystemLine(line);
  }

  async exec(argv: readonly string[], options: ExecutionOptions): Promise<Execution> {
    if (!this.isRunning) throw notRunning(this.id);
    try {
      return await startPodExecution({ client: this.#deps.client, path: this.#path }, argv, options);
    } catch (error) {
      if (isNotFound(error)) throw notRunning(this.id, error);
      await this.refresh();
      throw this.isRunning ? toKubernetesError(error) : notRunning(this.id, error);
    }
  }

  /** Runs one of Berth's own commands to its end. */
  async run(argv: readonly string[], input?: NodeJS.ReadableStream): ReturnType<typeof runInPod> {
    if (!this.isRunning) throw notRunning(this.id);
    return runInPod({ client: this.#deps.client, path: this.#path }, argv, input);
  }

  async address(port: number): Promise<InstanceAddress | undefined> {
    const host = this.#pod.status?.podIP;
    if (host === undefined || !this.isRunning || !this.details.ports.includes(port)) return undefined;
    const known = this.#addressCache.get(port);
    if (known !== undefined && known.until > performance.now()) return known.address;
    this.#addressCache.delete(port);
    const address = await this.#findAddress(host, port);
    if (address === undefined || !this.isRunning) return undefined;
    this.#addressCache.set(port, { address, until: performance.now() + ADDRESS_CACHE_TTL_MS });
    return address;
  }

  async #findAddress(host: string, port: number): Promise<InstanceAddress | undefined> {
    const { forwards } = this.#deps;
    if (forwards !== undefined) return forwards.address(this.#path, port);
    return (await connectionOpens(host, port)) ? { host, port } : undefined;
  }

  /** Undefined when it does not run, or its image has no shell. */
  async usage(): Promise<{ cpu: number; memoryInBytes: number } | undefined> {
    if (!this.isRunning) return undefined;
    const { stdout } = await this.run(USAGE_COMMAND).catch(() => ({ stdout: Buffer.alloc(0) }));
    const usage = parseUsage(stdout.toString('utf8'));
    if (usage === undefined || !this.isRunning) return undefined;
    return {
      cpu: this.#cpu.update(usage.cpuSeconds, this.#deps.clock.now()),
      memoryInBytes: usage.memoryInBytes,
    };
  }

  async detach(): Promise<void> {
    await this.#log.detach();
  }
}

function toGraceSeconds(graceMs: number): number {
  return Math.min(MAX_GRACE_SECONDS, Math.max(MIN_GRACE_SECONDS, Math.ceil(graceMs / 1000)));
}

/** A list and a watch may overtake each other. Versions of one API server are numbers that grow. */
function isOlder(pod: PodObject, known: PodObject): boolean {
  return Number(pod.metadata.resourceVersion) < Number(known.metadata.resourceVersion);
}

/** Undefined if there is no such pod, or another one of this name. */
export async function readPod(
  client: KubernetesClient,
  path: string,
  uid?: string,
): Promise<PodObject | undefined> {
  try {
    const pod = selectPod(await client.get<PodObject>(path));
    return uid === undefined || pod.metadata.uid === uid ? pod : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw toKubernetesError(error);
  }
}

/** Deletes this pod and no later one of the same name. */
export async function deletePod(
  client: KubernetesClient,
  path: string,
  uid: string,
  gracePeriodSeconds: number,
): Promise<void> {
  try {
    await client.delete(path, { gracePeriodSeconds, preconditions: { uid } });
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw toKubernetesError(error);
  }
}

/** Deletes a pod whose end nobody waits for; where it has ended or its node was lost, at once. */
export async function discardPod(
  client: KubernetesClient,
  path: string,
  pod: PodObject | undefined,
): Promise<void> {
  if (pod === undefined) return;
  await deletePod(client, path, pod.metadata.uid, podState(pod).status === 'exited' ? 0 : MIN_GRACE_SECONDS);
}
