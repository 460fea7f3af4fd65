import type { InstanceEngine } from '../../engines/engine.ts';
import { foreignImageReason } from '../../domain/images/local-image-names.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Log } from '../../support/log.ts';
import { imageProblemOf } from '../../domain/placement/worker-placement.ts';
import type { WorkerCandidate } from '../../domain/placement/worker-placement.ts';
import type { WorkerSpecSources } from './worker-spec-sources.ts';
import { NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';

export interface WorkerCandidatesDeps {
  engines: ReadonlyMap<string, InstanceEngine>;
  /** Whether the instances of a data center are known. */
  isConnected(dataCenterId: string): boolean;
  specSources: Pick<WorkerSpecSources, 'volume'>;
  log: Log;
}

/** Finds the data centers that may run a worker, with their present capacity. */
export class WorkerCandidates {
  readonly #deps: WorkerCandidatesDeps;

  constructor(deps: WorkerCandidatesDeps) {
    this.#deps = deps;
  }

  /** The data centers that are connected and answer. */
  async find(endpoint: Endpoint): Promise<WorkerCandidate[]> {
    const { engines, isConnected } = this.#deps;
    const connected = [...engines].filter(([dataCenterId]) => isConnected(dataCenterId));
    const candidates = await Promise.all(
      connected.map(([dataCenterId, engine]) => this.#candidate(endpoint, dataCenterId, engine)),
    );
    return candidates.filter((candidate) => candidate !== undefined);
  }

  /**
   * Why no data center that the endpoint may use can run its image, as far as this is known without asking
   * the engines.
   */
  imageProblem(endpoint: Endpoint): string | undefined {
    const allowed = [...this.#deps.engines].filter(
      ([dataCenterId]) =>
        endpoint.dataCenterIds.length === 0 || endpoint.dataCenterIds.includes(dataCenterId),
    );
    return imageProblemOf(
      endpoint,
      allowed.map(([, engine]) => ({
        images: engine.capabilities.images,
        imageProblem: imageProblemFor(endpoint, engine),
      })),
    );
  }

  /** Lets the engines that the endpoint may use begin with what its first worker would wait for. */
  prepareImage(endpoint: Endpoint): void {
    const { accountId, image, dataCenterIds } = endpoint;
    for (const [dataCenterId, engine] of this.#deps.engines)
      if (
        (dataCenterIds.length === 0 || dataCenterIds.includes(dataCenterId)) &&
        imageProblemFor(endpoint, engine) === undefined
      )
        engine.prepareImage?.(image, accountId);
  }

  /** Only an engine that can run the image is asked for its capacity. */
  async #candidate(
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
        images: engine.capabilities.images,
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
  return (
    foreignImageReason(accountId, image) ?? engine.accountProblem?.(accountId) ?? engine.imageProblem(image)
  );
}
