import type { InstanceSpec } from '../engines/instance.ts';
import type { Endpoint } from '../store/records.ts';
import type { Member } from './member.ts';
import type { Place } from './placement.ts';
import { workerSpec } from './worker-spec.ts';

/** What a worker is given, from wherever in the house it is kept. */
export interface Provisions {
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
  tokenOf(endpointId: string, workerId: string): string;
  /** Where workers of a data center reach this server. */
  workerUrl(dataCenterId: string): Promise<string>;
}

/** Gathers what this worker needs to run at its place. */
export async function provide(
  member: Member,
  endpoint: Endpoint,
  where: Place,
  provisions: Provisions,
): Promise<InstanceSpec> {
  const { accountId, registryId, image } = endpoint;
  const [env, url, volume, artifact, registry] = await Promise.all([
    provisions.resolveEnv(accountId, endpoint.env),
    provisions.workerUrl(where.dataCenterId),
    provisions.volume(endpoint, where.dataCenterId),
    provisions.artifact(endpoint),
    provisions.credentials(accountId, registryId, image),
  ]);
  const token = provisions.tokenOf(endpoint.id, member.record.id);
  return workerSpec({
    endpoint,
    record: member.record,
    where,
    env,
    url,
    token,
    volume,
    artifact,
    registry,
    onProgress: (line) => (member.progress = line),
  });
}
