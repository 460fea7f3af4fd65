import type { InstanceSpec, PythonHook } from '../../engines/instance.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { WorkerPlacement } from '../../domain/placement/worker-placement.ts';
import type { InstanceSpecSources } from '../instance-spec-sources.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { workerSpec } from './worker-spec.ts';

/** Where a worker gets what it needs to run. */
export interface WorkerSpecSources extends InstanceSpecSources {
  /** The directory of the endpoint's network volume in a data center; undefined if it has none there. */
  volume(
    endpoint: Endpoint,
    dataCenterId: string,
  ): Promise<{ id: string; folder: string; size: number; type: string } | undefined>;
  /** The file with the code of an endpoint whose image contains none; undefined if there is none. */
  artifact(endpoint: Endpoint): Promise<string | undefined>;
  /** The hook that accelerates the endpoint's workers; undefined if they are not to be accelerated. */
  pythonHook(endpoint: Endpoint): PythonHook | undefined;
  tokenFor(endpointId: string, workerId: string): string;
}

export async function buildWorkerSpec(
  worker: TrackedWorker,
  endpoint: Endpoint,
  placement: WorkerPlacement,
  sources: WorkerSpecSources,
  onImageReady: () => void,
): Promise<InstanceSpec> {
  const { accountId, registryId, image } = endpoint;
  const [env, url, volume, artifact, registry] = await Promise.all([
    sources.resolveEnv(accountId, endpoint.env),
    sources.serverUrl(placement.dataCenterId),
    sources.volume(endpoint, placement.dataCenterId),
    sources.artifact(endpoint),
    sources.credentials(accountId, registryId, image),
  ]);
  const sandbox = sources.sandbox?.(placement.dataCenterId);
  const spec = workerSpec({
    endpoint,
    record: worker.record,
    placement,
    env,
    url,
    token: sources.tokenFor(endpoint.id, worker.record.id),
    volume,
    artifact,
    registry,
    pythonHook: sources.pythonHook(endpoint),
    onProgress: (line) => (worker.progress = line),
    onImageReady,
  });
  return sandbox === undefined ? spec : { ...spec, sandbox };
}
