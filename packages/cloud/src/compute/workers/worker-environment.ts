import type { Endpoint } from '../../domain/records.ts';

export interface WorkerEnvironmentInput {
  id: string;
  endpoint: Endpoint;
  dataCenterId: string;
  gpuTypeId: string | null;
  gpuCount: number;
  cpu: number;
  /** The URL at which the worker reaches Berth. */
  url: string;
  token: string;
  volumeId: string | undefined;
}

/**
 * The variables that Berth adds to a worker's environment. The worker SDK fills in the placeholders
 * `$ID` and `$RUNPOD_POD_ID`, and appends to the query, so every URL has one.
 */
export function workerEnvironment({
  id,
  endpoint,
  dataCenterId,
  gpuTypeId,
  gpuCount,
  cpu,
  url,
  token,
  volumeId,
}: WorkerEnvironmentInput): Record<string, string> {
  const base = `${url}/v2/${endpoint.id}`;
  const query = `?gpu=${encodeURIComponent(gpuTypeId ?? 'none')}`;
  return {
    RUNPOD_ENDPOINT_ID: endpoint.id,
    RUNPOD_POD_ID: id,
    RUNPOD_POD_HOSTNAME: id,
    RUNPOD_DC_ID: dataCenterId,
    RUNPOD_GPU_COUNT: String(gpuCount),
    RUNPOD_CPU_COUNT: String(cpu),
    RUNPOD_AI_API_KEY: token,
    ...(volumeId !== undefined && { RUNPOD_VOLUME_ID: volumeId }),
    ...(endpoint.type === 'QUEUE' && {
      RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID${query}`,
      RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID${query}`,
      RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID${query}`,
      RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID${query}`,
      RUNPOD_PING_INTERVAL: '10000',
    }),
    // The SDK's own checks require the internet, 4 GB of free memory and a tenth of the disk, which not every
    // machine has.
    RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true',
  };
}
