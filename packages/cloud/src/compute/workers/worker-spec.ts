import { dirname } from 'node:path';
import type { InstanceSpec, PythonHook } from '../../engines/instance.ts';
import { parseArgs } from '../../domain/templates/container-command.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { WorkerPlacement } from '../../domain/placement/worker-placement.ts';
import { workerEnvironment } from './worker-environment.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

const VOLUME_PATH = '/runpod-volume';
/** The path from which flash's worker images unpack a build: the same as on the host. */
const ARTIFACT_PATH_VARIABLE = 'FLASH_BUILD_ARTIFACT_PATH';

export interface WorkerSpecInput {
  endpoint: Endpoint;
  record: Pick<Worker, 'id'>;
  placement: WorkerPlacement;
  /** The endpoint's own variables, with their secret references resolved. */
  env: Record<string, string>;
  /** The URL at which the worker reaches Berth, and its token. */
  url: string;
  token: string;
  volume: { id: string; folder: string; size: number; type: string } | undefined;
  /** The file with the code, if the image contains none. */
  artifact: string | undefined;
  registry: { username: string; password: string } | undefined;
  pythonHook: PythonHook | undefined;
  onProgress: (line: string) => void;
  onImageReady: () => void;
}

/** The instance spec of a worker. */
export function workerSpec({
  endpoint,
  record,
  placement,
  env,
  url,
  token,
  volume,
  artifact,
  registry,
  pythonHook,
  onProgress,
  onImageReady,
}: WorkerSpecInput): InstanceSpec {
  return {
    id: record.id,
    labels: {
      kind: 'worker',
      account: endpoint.accountId,
      endpoint: endpoint.id,
      version: String(endpoint.version),
    },
    image: endpoint.image,
    command: parseArgs(endpoint.args),
    env: {
      ...env,
      ...(artifact !== undefined && { [ARTIFACT_PATH_VARIABLE]: artifact }),
      ...workerEnvironment({ id: record.id, endpoint, ...placement, url, token, volumeId: volume?.id }),
    },
    ports: portsOf(endpoint),
    mounts: [
      ...(volume === undefined
        ? []
        : [
            {
              source: volume.folder,
              path: VOLUME_PATH,
              volume: { id: volume.id, sizeInGb: volume.size, shared: true, type: volume.type },
            },
          ]),
      ...(artifact === undefined
        ? []
        : [{ source: dirname(artifact), path: dirname(artifact), readOnly: true }]),
    ],
    ...(pythonHook !== undefined && { pythonHook }),
    cpu: placement.cpu,
    memoryInGb: placement.memoryInGb,
    gpus: placement.gpuTypeId === null ? null : { typeId: placement.gpuTypeId, count: placement.gpuCount },
    containerDiskInGb: endpoint.containerDisk,
    ...(registry !== undefined && { registry: { username: registry.username, password: registry.password } }),
    onProgress,
    onImageReady,
  };
}

function portsOf(endpoint: Endpoint): InstanceSpec['ports'] {
  if (endpoint.type === 'QUEUE')
    return endpoint.ports.map((entry) => ({
      port: Number.parseInt(entry, 10),
      protocol: entry.endsWith('/http') ? 'http' : 'tcp',
    }));
  const [port, healthPort] = loadBalancerPorts(endpoint);
  return [
    { port, protocol: 'http', listenPortVariable: 'PORT' },
    ...(healthPort === port
      ? []
      : [{ port: healthPort, protocol: 'http' as const, listenPortVariable: 'PORT_HEALTH' }]),
  ];
}

/** The ports of a load balancing endpoint for requests and for health checks. */
export function loadBalancerPorts({ env, ports }: Endpoint): [number, number] {
  const declared = ports.map((entry) => Number.parseInt(entry, 10))[0];
  const port = Number(env['PORT']) || declared || 80;
  return [port, Number(env['PORT_HEALTH']) || port];
}
