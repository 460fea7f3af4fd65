import { healthCheckPath } from '../domain/endpoints/endpoint-defaults.ts';
import type { Endpoint } from '../domain/records.ts';

/** The addresses of a queue endpoint; `{job_id}` stands for the id of a job. */
export interface QueueUrls {
  run: string;
  runSync: string;
  status: string;
  stream: string;
  cancel: string;
  retry: string;
  purgeQueue: string;
  health: string;
}

/** Of a load balancing endpoint only these are known; the rest is up to its workers. */
export interface LoadBalancerUrls {
  base: string;
  health: string;
}

/** Whole addresses of what Berth serves, for answers that contain them. */
export class EndpointUrls {
  readonly #origin: () => string;

  /** Asked each time: a server that takes a free port learns its address only when it listens. */
  constructor(origin: () => string) {
    this.#origin = origin;
  }

  of({ id, type, env }: Pick<Endpoint, 'id' | 'type' | 'env'>): QueueUrls | LoadBalancerUrls {
    const base = `${this.#origin()}/v2/${id}`;
    if (type === 'LOAD_BALANCER') return { base, health: base + healthCheckPath(env).replace(/^\/*/, '/') };
    return {
      run: `${base}/run`,
      runSync: `${base}/runsync`,
      status: `${base}/status/{job_id}`,
      stream: `${base}/stream/{job_id}`,
      cancel: `${base}/cancel/{job_id}`,
      retry: `${base}/retry/{job_id}`,
      purgeQueue: `${base}/purge-queue`,
      health: `${base}/health`,
    };
  }
}
