import type { Clock } from '../../support/clock.ts';
import type { GpuShelf } from '../gpu-shelf.ts';
import type { InstanceEvent } from '../instance.ts';
import type { KeptLogs } from '../kept-logs.ts';
import { LogBook } from '../logs/log-book.ts';
import type { Turns } from '../turns.ts';
import type { Container } from './container.ts';
import type { Daemon } from './daemon.ts';
import { DockerInstance, inspect, removeContainer } from './docker-instance.ts';
import type { ContainerChange } from './events.ts';
import { isInstanceId } from './instance-id.ts';
import { ownershipFilter, readLabels } from './labels.ts';
import type { Networks } from './networks.ts';
import type { StartAttempts } from './start-attempts.ts';

const SWEEP_LOGS_EVERY_MS = 3_600_000;

interface ListedContainer {
  Id: string;
  State: string;
  Labels: Record<string, string>;
}

export interface InventoryParts {
  daemon: Daemon;
  installation: string;
  networks: Networks;
  gpus: GpuShelf;
  logs: KeptLogs;
  /** One thing at a time is done with an instance. */
  turns: Turns;
  starts: StartAttempts;
  clock: Clock;
  onEvent(event: InstanceEvent): void;
  onProblem(what: string, error: unknown): void;
}

/** The instances that are known, kept in step with the containers that the daemon has. */
export class Inventory {
  readonly #parts: InventoryParts;
  readonly #instances = new Map<string, DockerInstance>();
  #opening: Promise<void> | undefined;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(parts: InventoryParts) {
    this.#parts = parts;
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
  async settled(): Promise<void> {
    await this.#opening?.catch(() => undefined);
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeping);
    await Promise.all(this.all().map((instance) => instance.release()));
  }

  /** A container runs: there is an instance for it from now on. */
  know(container: Container): DockerInstance {
    const { daemon, logs, gpus, clock, onProblem } = this.#parts;
    const instance = new DockerInstance({
      daemon,
      container,
      logFolder: logs.folder(container.id),
      clock,
      onEnded: () => {
        gpus.release(instance.id);
        this.tellOf(instance);
      },
      onProblem: (what, error) => onProblem(what, error),
    });
    this.#instances.set(instance.id, instance);
    return instance;
  }

  tellOf(instance: DockerInstance): void {
    const { id, status, exitCode, signal, startedAt, endedAt } = instance.describe();
    this.#parts.onEvent({ id, status, exitCode, signal, at: endedAt ?? startedAt });
  }

  /** Another one takes its place. */
  discard(id: string): void {
    this.#instances.delete(id);
  }

  /** It is no more. Its log can be read for a while. */
  async forget({ id }: DockerInstance): Promise<void> {
    this.#instances.delete(id);
    await this.#parts.logs.age(id);
  }

  /** What the daemon has, against what is known of it. */
  async look(): Promise<void> {
    const listed = await this.#containers();
    const running = new Set(
      listed.filter(({ State: state }) => state === 'running').map(({ Id: containerId }) => containerId),
    );
    const there = new Set(listed.map(({ Id: containerId }) => containerId));
    await Promise.all(
      this.all().map(async (instance) => {
        if (!running.has(instance.containerId)) await instance.look();
        if (!there.has(instance.containerId)) await this.#lost(instance);
      }),
    );
    await this.#takeUpOthers(listed);
  }

  /** The daemon tells that something happened to a container. */
  async hear({ containerId, isGone, exitCode }: ContainerChange): Promise<void> {
    const instance = this.all().find((one) => one.containerId === containerId);
    if (instance === undefined) return;
    await instance.look(exitCode);
    if (isGone) await this.#lost(instance);
  }

  async sweepLogs(): Promise<void> {
    const { logs, starts, onProblem } = this.#parts;
    try {
      await logs.sweep((id) => this.#instances.has(id) || starts.has(id));
    } catch (error) {
      onProblem('old logs could not be removed', error);
    }
  }

  /** Takes up what an earlier Berth left. A container whose start was cut off is cleared away; nobody was told of it. */
  async #recover(): Promise<void> {
    const { daemon, networks } = this.#parts;
    const containers = await Promise.all(
      (await this.#containers()).map(({ Id: containerId }) => inspect(daemon, containerId)),
    );
    for (const container of containers) {
      if (container === undefined) continue;
      if (container.isNew) await removeContainer(daemon, container.containerId);
      else await this.#takeUp(container);
    }
    await networks.sweep();
    this.#sweeping ??= setInterval(() => void this.sweepLogs(), SWEEP_LOGS_EVERY_MS).unref();
    await this.sweepLogs();
  }

  async #takeUp(container: Container): Promise<void> {
    const { gpus: shelf, logs, onProblem } = this.#parts;
    const { id, gpus } = container;
    const instance = this.know(container);
    if (instance.isRunning) {
      if (gpus !== null) shelf.hold(id, gpus);
      instance.attend(await LogBook.open(logs.folder(id)));
    } else
      instance
        .settle()
        .catch((error: unknown) => onProblem(`the log of ${id} could not be completed`, error));
  }

  /** Another server that led before may have started some since we looked. */
  #takeUpOthers(listed: readonly ListedContainer[]): Promise<void> {
    const { daemon, turns, starts } = this.#parts;
    return turns.run('', async () => {
      for (const { Id: containerId, Labels: labels } of listed) {
        const { id } = readLabels(labels);
        const isOurs = (): boolean => this.#instances.has(id) || starts.has(id) || turns.isBusy(id);
        if (isOurs()) continue;
        const container = await inspect(daemon, containerId);
        if (container !== undefined && !container.isNew && !isOurs()) await this.#takeUp(container);
      }
    });
  }

  /** Somebody else removed the container. What we remove ourselves is taken care of there. */
  #lost(instance: DockerInstance): Promise<void> {
    const { daemon, turns } = this.#parts;
    return turns.run(instance.id, async () => {
      if (
        this.#instances.get(instance.id) !== instance ||
        (await inspect(daemon, instance.containerId)) !== undefined
      )
        return;
      await instance.settle();
      await this.forget(instance);
    });
  }

  async #containers(): Promise<ListedContainer[]> {
    const { daemon, installation } = this.#parts;
    const containers = await daemon.ask((client) =>
      client.listContainers({ all: true, filters: ownershipFilter(installation) }),
    );
    return containers.filter(({ Labels: labels }) => isInstanceId(readLabels(labels).id));
  }
}
