import { type InstanceEngine, NO_CAPACITY } from '../engines/engine.ts';
import { foreignImage } from '../resources/images/names.ts';
import type { Endpoint } from '../store/records.ts';
import type { Log } from '../support/log.ts';
import type { Connections } from './connections.ts';
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
    const sites = await Promise.all(connected.map(([dataCenterId, engine]) => this.#site(endpoint, dataCenterId, engine)));
    return sites.filter((site) => site !== undefined);
  }

  /** Only an engine that could run the image is asked for its capacity. */
  async #site(endpoint: Endpoint, dataCenterId: string, engine: InstanceEngine): Promise<Site | undefined> {
    const { provisions, log } = this.#parts;
    const imageProblem = foreignImage(endpoint.accountId, endpoint.image) ?? engine.imageProblem(endpoint.image);
    try {
      const capacity = imageProblem === undefined ? await engine.capacity() : NO_CAPACITY;
      return { dataCenterId, images: engine.abilities.images, capacity, imageProblem, volumeId: (await provisions.volume(endpoint, dataCenterId))?.id };
    } catch (error) {
      log.warn({ err: error, dataCenterId }, 'an engine does not answer');
      return undefined;
    }
  }
}
