import type { Clock } from '../../support/clock.ts';
import type { GpuAllocator } from '../gpu-allocator.ts';
import type { InstanceEvent } from '../instance.ts';
import type { LogRetention } from '../logs/log-retention.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { DockerContainer } from './docker-container.ts';
import type { Daemon } from './daemon.ts';
import { DockerInstance, inspectContainer, removeContainer } from './docker-instance.ts';
import type { ContainerEvent } from './docker-events.ts';
import { isInstanceId } from './instance-id.ts';
import { ownershipFilter, readLabels } from './container-labels.ts';
import type { DockerNetworks } from './docker-networks.ts';
import type { StartAttempts } from './start-attempts.ts';

const LOG_SWEEP_INTERVAL_MS = 3_600_000;

interface ListedContainer {
  Id: string;
  State: string;
  Labels: Record<string, string>;
}

export interface ContainerInventoryDeps {
  daemon: Daemon;
  installation: string;
  networks: DockerNetworks;
  gpus: GpuAllocator;
  logs: LogRetention;
  /** One thing at a time is done with an instance. */
  mutex: KeyedMutex;
  starts: StartAttempts;
  clock: Clock;
  onEvent(event: InstanceEvent): void;
  onProblem(what: string, error: unknown): void;
}

/** The instances that are known, kept in step with the containers that the daemon has. */
export class ContainerInventory {
  readonly #deps: ContainerInventoryDeps;
  readonly #instances = new Map<string, DockerInstance>();
  #opening: Promise<void> | undefined;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(deps: ContainerInventoryDeps) {
    this.#deps = deps;
  }

  get(id: string): DockerInstance | undefined {
    return this.#instances.get(id);
  }

  all(): DockerInstance[] {
    return [...this.#instances.values()];
  }

  /** Resolves when what an earlier Berth left is known. */
  open(): Promise<void> {
    const opening = (this.#opening ??= this.#recover());
    opening.catch(() => {
      // The daemon may be there the next time.
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  /** Resolves when it is not being opened any more. */
  async waitUntilOpened(): Promise<void> {
    await this.#opening?.catch(() => undefined);
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeping);
    await Promise.all(this.all().map((instance) => instance.detach()));
  }

  /** A container runs: there is an instance for it from now on. */
  track(container: DockerContainer): DockerInstance {
    const { daemon, logs, gpus, clock, onProblem } = this.#deps;
    const instance = new DockerInstance({
      daemon,
      container,
      logFolder: logs.folder(container.id),
      clock,
      onEnded: () => {
        gpus.release(instance.id);
        this.emitStatus(instance);
      },
      onProblem: (what, error) => onProblem(what, error),
    });
    this.#instances.set(instance.id, instance);
    return instance;
  }

  emitStatus(instance: DockerInstance): void {
    const { id, status, exitCode, signal, startedAt, endedAt } = instance.describe();
    this.#deps.onEvent({ id, status, exitCode, signal, at: endedAt ?? startedAt });
  }

  /** Another one takes its place. */
  untrack(id: string): void {
    this.#instances.delete(id);
  }

  /** It is no more. Its log can be read for a while. */
  async remove({ id }: DockerInstance): Promise<void> {
    this.#instances.delete(id);
    await this.#deps.logs.startRetention(id);
  }

  /** What the daemon has, against what is known of it. */
  async refresh(): Promise<void> {
    const listed = await this.#containers();
    const running = new Set(
      listed.filter(({ State: state }) => state === 'running').map(({ Id: containerId }) => containerId),
    );
    const there = new Set(listed.map(({ Id: containerId }) => containerId));
    await Promise.all(
      this.all().map(async (instance) => {
        if (!running.has(instance.containerId)) await instance.refresh();
        if (!there.has(instance.containerId)) await this.#lost(instance);
      }),
    );
    await this.#adoptOthers(listed);
  }

  /** The daemon tells that something happened to a container. */
  async handleEvent({ containerId, isGone, exitCode }: ContainerEvent): Promise<void> {
    const instance = this.all().find((one) => one.containerId === containerId);
    if (instance === undefined) return;
    await instance.refresh(exitCode);
    if (isGone) await this.#lost(instance);
  }

  async deleteExpiredLogs(): Promise<void> {
    const { logs, starts, onProblem } = this.#deps;
    try {
      await logs.deleteExpired((id) => this.#instances.has(id) || starts.has(id));
    } catch (error) {
      onProblem('old logs could not be removed', error);
    }
  }

  /** Takes up what an earlier Berth left. A container whose start was cut off is cleared away; nobody was told of it. */
  async #recover(): Promise<void> {
    const { daemon, networks } = this.#deps;
    const containers = await Promise.all(
      (await this.#containers()).map(({ Id: containerId }) => inspectContainer(daemon, containerId)),
    );
    for (const container of containers) {
      if (container === undefined) continue;
      if (container.isNew) await removeContainer(daemon, container.containerId);
      else await this.#adopt(container);
    }
    await networks.removeUnused();
    this.#sweeping ??= setInterval(() => void this.deleteExpiredLogs(), LOG_SWEEP_INTERVAL_MS).unref();
    await this.deleteExpiredLogs();
  }

  async #adopt(container: DockerContainer): Promise<void> {
    const { gpus: shelf, logs, onProblem } = this.#deps;
    const { id, gpus } = container;
    const instance = this.track(container);
    if (instance.isRunning) {
      if (gpus !== null) shelf.reserve(id, gpus);
      instance.captureOutput(await SegmentedLog.open(logs.folder(id)));
    } else
      instance
        .finalizeLog()
        .catch((error: unknown) => onProblem(`the log of ${id} could not be completed`, error));
  }

  /** Another server that led before may have started some since we looked. */
  #adoptOthers(listed: readonly ListedContainer[]): Promise<void> {
    const { daemon, mutex, starts } = this.#deps;
    return mutex.runExclusive('', async () => {
      for (const { Id: containerId, Labels: labels } of listed) {
        const { id } = readLabels(labels);
        const isOurs = (): boolean => this.#instances.has(id) || starts.has(id) || mutex.isLocked(id);
        if (isOurs()) continue;
        const container = await inspectContainer(daemon, containerId);
        if (container !== undefined && !container.isNew && !isOurs()) await this.#adopt(container);
      }
    });
  }

  /** Somebody else removed the container. What we remove ourselves is taken care of there. */
  #lost(instance: DockerInstance): Promise<void> {
    const { daemon, mutex } = this.#deps;
    return mutex.runExclusive(instance.id, async () => {
      if (
        this.#instances.get(instance.id) !== instance ||
        (await inspectContainer(daemon, instance.containerId)) !== undefined
      )
        return;
      await instance.finalizeLog();
      await this.remove(instance);
    });
  }

  async #containers(): Promise<ListedContainer[]> {
    const { daemon, installation } = this.#deps;
    const containers = await daemon.call((client) =>
      client.listContainers({ all: true, filters: ownershipFilter(installation) }),
    );
    return containers.filter(({ Labels: labels }) => isInstanceId(readLabels(labels).id));
  }
}
