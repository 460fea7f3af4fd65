import type { Clock } from '../../support/clock.ts';
import type { DockerContainer } from './docker-container.ts';
import { containerName } from './container-options.ts';
import type { Daemon } from './daemon.ts';
import { DockerInstance, inspectContainer } from './docker-instance.ts';

/** How long a running container is cached. */
const CACHE_TTL_MS = 1000;

export interface PeerContainersDeps {
  daemon: Daemon;
  installation: string;
  clock: Clock;
}

/**
 * Containers that another Berth server of this installation manages. Their addresses and usage can be read;
 * their logs and their end are left to that server.
 */
export class PeerContainers {
  readonly #deps: PeerContainersDeps;
  readonly #cache = new Map<string, { instance: DockerInstance; until: number }>();

  constructor(deps: PeerContainersDeps) {
    this.#deps = deps;
  }

  /** Finds a running instance. */
  async find(id: string): Promise<DockerInstance | undefined> {
    const known = this.#cache.get(id);
    if (known !== undefined && performance.now() < known.until) return known.instance;
    const container = await inspectContainer(this.#deps.daemon, containerName(id));
    if (
      container === undefined ||
      container.installation !== this.#deps.installation ||
      container.instance.status !== 'running'
    ) {
      this.#cache.delete(id);
      return undefined;
    }
    // Keep the object of the same container: its CPU meter needs the last reading.
    const instance =
      known?.instance.containerId === container.containerId ? known.instance : this.#create(container);
    this.#cache.set(id, { instance, until: performance.now() + CACHE_TTL_MS });
    return instance;
  }

  #create(container: DockerContainer): DockerInstance {
    const { daemon, clock } = this.#deps;
    return new DockerInstance({
      daemon,
      container,
      logFolder: '',
      clock,
      onEnded: () => undefined,
      onProblem: () => undefined,
    });
  }
}
