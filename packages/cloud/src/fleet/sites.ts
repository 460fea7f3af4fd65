import { type InstanceEngine, NO_CAPACITY } from '../engines/engine.ts';
import { foreignImage } from '../resources/images/names.ts';
import type { Endpoint } from '../store/records.ts';
import type { Log } from '../support/log.ts';
import type { Connections } from './connections.ts';
import { imageProblem } from './placement.ts';
import type { Site } from './placement.ts';
import type { Provisions } from './provisions.ts';

export interface SitesParts {
  engines: ReadonlyMap<string, InstanceEngine>;
  connections: Connections;
  provisions: Pick<Provisions, 'volume'>;
  log: Log;
}

/** What the data centers have to offer for a worker, as it is now. */
export class Sites {
  readonly #parts: SitesParts;

  constructor(parts: SitesParts) {
    this.#parts = parts;
  }

  /** Those that are connected and answer. */
  async for(endpoint: Endpoint): Promise<Site[]> {
    const { engines, connections } = this.#parts;
    const connected = [...engines].filter(([dataCenterId]) => connections.has(dataCenterId));
    const sites = await Promise.all(
      connected.map(([dataCenterId, engine]) => this.#site(endpoint, dataCenterId, engine)),
    );
    return sites.filter((site) => site !== undefined);
  }

  /** Why none that the endpoint may use can run its image, as far as that is known without asking them. */
  imageProblem(endpoint: Endpoint): string | undefined {
    const allowed = [...this.#parts.engines].filter(
      ([dataCenterId]) =>
        endpoint.dataCenterIds.length === 0 || endpoint.dataCenterIds.includes(dataCenterId),
    );
    return imageProblem(
      endpoint,
      allowed.map(([, engine]) => ({
        images: engine.abilities.images,
        imageProblem: problemOf(endpoint, engine),
      })),
    );
  }

  /** Only an engine that could run the image is asked for its capacity. */
  async #site(endpoint: Endpoint, dataCenterId: string, engine: InstanceEngine): Promise<Site | undefined> {
    const { provisions, log } = this.#parts;
    const problem = problemOf(endpoint, engine);
    try {
      const capacity = problem === undefined ? await engine.capacity() : NO_CAPACITY;
      return {
        dataCenterId,
        images: engine.abilities.images,
        capacity,
        imageProblem: problem,
        volumeId: (await provisions.volume(endpoint, dataCenterId))?.id,
      };
    } catch (error) {
      log.warn({ err: error, dataCenterId }, 'an engine does not answer');
      return undefined;
    }
  }
}

function problemOf({ accountId, image }: Endpoint, engine: InstanceEngine): string | undefined {
  return foreignImage(accountId, image) ?? engine.imageProblem(image);
}
