import type { Clock } from '../../support/clock.ts';
import type { DockerContainer } from './docker-container.ts';
import { containerName } from './container-options.ts';
import type { Daemon } from './daemon.ts';
import { DockerInstance, inspectContainer } from './docker-instance.ts';

/** How long one that was seen running is taken to run. */
const CACHE_TTL_MS = 1000;

export interface PeerContainersDeps {
  daemon: Daemon;
  installation: string;
  clock: Clock;
}

/**
 * Containers that another Berth of this installation looks after. They can be reached and asked how
 * they are; their logs and their end are the other's business.
 */
export class PeerContainers {
  readonly #deps: PeerContainersDeps;
  readonly #cache = new Map<string, { instance: DockerInstance; until: number }>();

  constructor(deps: PeerContainersDeps) {
    this.#deps = deps;
  }

  /** One that runs now. */
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
    // The same one keeps what it was last asked, so that what it used since can be told.
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
