import type { InstanceEngine } from '../../engines/engine.ts';
import { foreignImageReason } from '../../domain/images/local-image-names.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Log } from '../../support/log.ts';
import type { DataCenterConnections } from './data-center-connections.ts';
import { imageProblemOf } from '../../domain/placement/worker-placement.ts';
import type { WorkerCandidate } from '../../domain/placement/worker-placement.ts';
import type { WorkerSpecSources } from './worker-spec-sources.ts';
import { NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';

export interface WorkerCandidatesDeps {
  engines: ReadonlyMap<string, InstanceEngine>;
  connections: DataCenterConnections;
  specSources: Pick<WorkerSpecSources, 'volume'>;
  log: Log;
}

/** What the data centers have to offer for a worker, as it is now. */
export class WorkerCandidates {
  readonly #deps: WorkerCandidatesDeps;

  constructor(deps: WorkerCandidatesDeps) {
    this.#deps = deps;
  }

  /** Those that are connected and answer. */
  async find(endpoint: Endpoint): Promise<WorkerCandidate[]> {
    const { engines, connections } = this.#deps;
    const connected = [...engines].filter(([dataCenterId]) => connections.isConnected(dataCenterId));
    const sites = await Promise.all(
      connected.map(([dataCenterId, engine]) => this.#site(endpoint, dataCenterId, engine)),
    );
    return sites.filter((site) => site !== undefined);
  }

  /** Why none that the endpoint may use can run its image, as far as that is known without asking them. */
  imageProblem(endpoint: Endpoint): string | undefined {
    const allowed = [...this.#deps.engines].filter(
      ([dataCenterId]) =>
        endpoint.dataCenterIds.length === 0 || endpoint.dataCenterIds.includes(dataCenterId),
    );
    return imageProblemOf(
      endpoint,
      allowed.map(([, engine]) => ({
        images: engine.abilities.images,
        imageProblem: imageProblemFor(endpoint, engine),
      })),
    );
  }

  /** Only an engine that could run the image is asked for its capacity. */
  async #site(
    endpoint: Endpoint,
    dataCenterId: string,
    engine: InstanceEngine,
  ): Promise<WorkerCandidate | undefined> {
    const { specSources, log } = this.#deps;
    const problem = imageProblemFor(endpoint, engine);
    try {
      const capacity = problem === undefined ? await engine.capacity() : NO_CAPACITY;
      return {
        dataCenterId,
        images: engine.abilities.images,
        capacity,
        imageProblem: problem,
        volumeId: (await specSources.volume(endpoint, dataCenterId))?.id,
      };
    } catch (error) {
      log.warn({ err: error, dataCenterId }, 'an engine does not answer');
      return undefined;
    }
  }
}

function imageProblemFor({ accountId, image }: Endpoint, engine: InstanceEngine): string | undefined {
  return foreignImageReason(accountId, image) ?? engine.imageProblem(image);
}
