import type { InstanceSpec } from '../../engines/instance.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerPlacement } from '../../domain/placement/worker-placement.ts';
import { workerSpec } from './worker-spec.ts';

/** What a worker is given, from wherever in the house it is kept. */
export interface WorkerSpecSources {
  /** The environment with its secrets filled in. */
  resolveEnv(accountId: string, env: Record<string, string>): Promise<Record<string, string>>;
  /** What an image is pulled with: saved credentials that are named, or what the account has for this image. */
  credentials(
    accountId: string,
    registryId: string | null,
    image: string,
  ): Promise<{ username: string; password: string } | undefined>;
  /** Where a network volume of the endpoint lies in a data center; undefined where it has none there. */
  volume(endpoint: Endpoint, dataCenterId: string): Promise<{ id: string; folder: string } | undefined>;
  /** The file with the code of an endpoint whose image comes without; undefined where it has none. */
  artifact(endpoint: Endpoint): Promise<string | undefined>;
  tokenFor(endpointId: string, workerId: string): string;
  /** Where workers of a data center reach this server. */
  workerUrl(dataCenterId: string): Promise<string>;
}

/** Gathers what this worker needs to run at its place. */
export async function buildWorkerSpec(
  member: TrackedWorker,
  endpoint: Endpoint,
  where: WorkerPlacement,
  provisions: WorkerSpecSources,
): Promise<InstanceSpec> {
  const { accountId, registryId, image } = endpoint;
  const [env, url, volume, artifact, registry] = await Promise.all([
    provisions.resolveEnv(accountId, endpoint.env),
    provisions.workerUrl(where.dataCenterId),
    provisions.volume(endpoint, where.dataCenterId),
    provisions.artifact(endpoint),
    provisions.credentials(accountId, registryId, image),
  ]);
  const token = provisions.tokenFor(endpoint.id, member.record.id);
  return workerSpec({
    endpoint,
    record: member.record,
    placement: where,
    env,
    url,
    token,
    volume,
    artifact,
    registry,
    onProgress: (line) => (member.progress = line),
  });
}
