import type { LogLimits } from '../../domain/limits.ts';
import type { Clock } from '../../support/clock.ts';
import type { VolumeSizeReader } from '../disk-guard.ts';
import type { GpuAllocator } from '../gpu-allocator.ts';
import { InstanceInventory, type InstanceInventoryDeps } from '../instance-inventory.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { ListedContainer } from './client/docker-objects.ts';
import type { DockerContainer } from './docker-container.ts';
import type { Daemon } from './daemon.ts';
import { DockerInstance, inspectContainer, removeContainer } from './docker-instance.ts';
import type { ContainerEvent } from './docker-events.ts';
import { isInstanceId } from '../instance-id.ts';
import { ownershipFilter, readLabels } from './container-labels.ts';
import type { DockerNetworks } from './docker-networks.ts';

export interface ContainerInventoryDeps extends InstanceInventoryDeps {
  daemon: Daemon;
  installation: string;
  networks: DockerNetworks;
  gpus: GpuAllocator;
  clock: Clock;
  logLimits: LogLimits | undefined;
  volumeSize?: VolumeSizeReader | undefined;
}

/** The known instances, kept in sync with the daemon's containers. */
export class ContainerInventory extends InstanceInventory<DockerInstance> {
  readonly #deps: ContainerInventoryDeps;

  constructor(deps: ContainerInventoryDeps) {
    super(deps);
    this.#deps = deps;
  }

  /** Adds an instance for a container that runs. */
  track(container: DockerContainer): DockerInstance {
    const { daemon, logs, gpus, clock, logLimits, volumeSize, onProblem } = this.#deps;
    const instance = new DockerInstance({
      daemon,
      container,
      logFolder: logs.folder(container.id),
      logLimits,
      volumeSize,
      clock,
      onEnded: () => {
        gpus.release(instance.id);
        this.emitStatus(instance);
      },
      onProblem: (what, error) => onProblem(what, error),
    });
    this.add(instance);
    return instance;
  }

  /** Compares the known instances with the daemon's containers. */
  async refresh(): Promise<void> {
    const listed = await this.#containers();
    const running = new Set(
      listed.filter(({ State: state }) => state === 'running').map(({ Id: containerId }) => containerId),
    );
    const existing = new Set(listed.map(({ Id: containerId }) => containerId));
    await Promise.all(
      this.all().map(async (instance) => {
        if (!running.has(instance.containerId)) await instance.refresh();
        if (!existing.has(instance.containerId)) await this.#handleRemoved(instance);
      }),
    );
    await this.#adoptOthers(listed);
  }

  /** Handles an event of the daemon. */
  async handleEvent({ containerId, isGone, exitCode }: ContainerEvent): Promise<void> {
    const instance = this.all().find((one) => one.containerId === containerId);
    if (instance === undefined) return;
    await instance.refresh(exitCode);
    if (isGone) await this.#handleRemoved(instance);
  }

  /**
   * Adopts the containers of an earlier Berth process. A container whose start was interrupted is removed;
   * its start was never acknowledged.
   */
  protected async recover(): Promise<void> {
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
  }

  async #adopt(container: DockerContainer): Promise<void> {
    const { gpus: allocator, logs, onProblem } = this.#deps;
    const { id, gpus } = container;
    const instance = this.track(container);
    if (instance.isRunning) {
      if (gpus !== null) allocator.reserve(id, gpus);
      instance.captureOutput(await SegmentedLog.open(logs.folder(id)));
    } else
      instance
        .finalizeLog()
        .catch((error: unknown) => onProblem(`the log of ${id} could not be completed`, error));
  }

  /** Adopts containers that another server started while it was the leader. */
  #adoptOthers(listed: readonly ListedContainer[]): Promise<void> {
    const { daemon, mutex } = this.#deps;
    return mutex.runExclusive('', async () => {
      for (const { Id: containerId, Labels: labels } of listed) {
        const { id } = readLabels(labels);
        if (this.isManaged(id)) continue;
        const container = await inspectContainer(daemon, containerId);
        if (container !== undefined && !container.isNew && !this.isManaged(id)) await this.#adopt(container);
      }
    });
  }

  /**
   * Handles a container that was removed from outside. Our own removals are handled by the caller of
   * remove().
   */
  #handleRemoved(instance: DockerInstance): Promise<void> {
    const { daemon, mutex } = this.#deps;
    return mutex.runExclusive(instance.id, async () => {
      if (
        this.get(instance.id) !== instance ||
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
      client.get<ListedContainer[]>('/containers/json', {
        all: true,
        filters: ownershipFilter(installation),
      }),
    );
    return containers.filter(({ Labels: labels }) => isInstanceId(readLabels(labels).id));
  }
}
