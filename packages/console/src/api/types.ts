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
  gpu: { pools?: string[]; types?: string[]; count?: number } | null;
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
