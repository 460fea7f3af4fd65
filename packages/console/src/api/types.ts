/** Records of REST v2, as far as more than one page uses them. */
export interface Endpoint {
  id: string;
  name: string;
  type: 'QUEUE' | 'LOAD_BALANCER';
  requestUrls: Record<string, string>;
  image: string;
  args: string;
  cmd: string[];
  entrypoint: string[];
  disk: number;
  env: Record<string, string>;
  ports: string[];
  registry: string | null;
  gpu: { pools?: string[]; types?: string[]; excludedTypes?: string[]; count?: number } | null;
  cpu?: { id: string; vcpuCount: number; memory: number }[];
  workers: { min: number; max: number; idleTimeout?: number };
  scaling: { type: string; value?: number; [field: string]: unknown };
  dataCenterIds: string[];
  networkVolumes: string[];
  timeout: number;
  flashboot: string;
  accelerate: boolean;
  jobTtl: number;
  retention: number | null;
  maxRetries: number;
  createdAt: string;
}

export interface StartPhases {
  scheduledAt?: string | null;
  imageReadyAt?: string | null;
  startedAt?: string | null;
  connectedAt?: string | null;
  firstJobAt?: string | null;
}

export interface Worker {
  id: string;
  status: 'RUNNING' | 'IDLE' | 'INITIALIZING' | 'THROTTLED' | 'UNHEALTHY';
  isStale: boolean;
  version: number | null;
  gpuCount: number;
  image: string | null;
  uptimeSeconds: number | null;
  gpuTypeId: string | null;
  dataCenterId: string | null;
  startedAt: string | null;
  accelerated: boolean;
  phases: StartPhases | null;
  reason: string | null;
}

export interface WorkerList {
  workers: Worker[];
  /** The last ones that ended, newest first, where asked for. */
  ended?: { id: string; endedAt: string }[];
  summary: Record<'running' | 'idle' | 'initializing' | 'throttled' | 'unhealthy' | 'total', number>;
  endpointVersion: number | null;
  /** Why no worker could take work now. */
  reason: string | null;
}

export interface EndpointHealth {
  jobs: Record<'completed' | 'failed' | 'inProgress' | 'inQueue' | 'retried', number>;
  workers: Record<'idle' | 'initializing' | 'ready' | 'running' | 'throttled' | 'unhealthy', number>;
}

export interface Release {
  id: string;
  version: number | null;
  source: string;
  createdByUserId: string | null;
  workerCount: number;
  createdAt: string;
  diff: { field: string; old: unknown; new: unknown }[];
}

export interface ReleaseList {
  endpointVersion: number;
  rollout: { inProgress: boolean; workersOnLatest: number; workersTotal: number; percentOnLatest: number };
  releases: Release[];
}

export type JobStatus = 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'TIMED_OUT';

export interface JobEntry {
  id: string;
  status: JobStatus;
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
  delayTime: number | null;
  executionTime: number | null;
  workerId: string | null;
  retries: number;
  error: string | null;
  fingerprint: string | null;
  inputPreview: string | null;
}

export interface JobPage {
  jobs: JobEntry[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}

export interface JobDetail extends Omit<JobEntry, 'inputPreview'> {
  input: unknown;
  output: unknown;
  errorDetail: unknown;
  webhook: string | null;
}

export interface ErrorGroup {
  fingerprint: string;
  type: string;
  message: string;
  count: number;
  firstSeen: string;
  lastSeen: string;
  sampleJobId: string;
}

export interface LogEntry {
  ts: string;
  source: string;
  line: string;
}
