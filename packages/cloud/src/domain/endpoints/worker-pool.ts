/** A worker that takes requests, and where it listens. */
export interface Upstream {
  id: string;
  host: string;
  port: number;
}

/** The workers of load balancing endpoints: the gateway sends requests to them, and compute runs them. */
export interface WorkerPool {
  /** Workers whose health check succeeds. Called for every request, so it answers from memory. */
  ready(endpointId: string): readonly Upstream[];
  /** Resolves when the workers of an endpoint have changed, at the timeout, or when the signal aborts. */
  waitForChange(endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void>;
  /** The number of requests that an endpoint has, in flight and waiting. Reported at every change. */
  reportDemand(endpointId: string, requests: number): void;
  /**
   * A worker was given a request, or has finished one: its idle time starts again. `inFlight` is its number
   * of requests now.
   */
  reportActivity(endpointId: string, workerId: string, inFlight: number): void;
  /**
   * Whether a worker that is not ready exists and may become ready. Without this method, it counts as gone.
   */
  exists?(endpointId: string, workerId: string): boolean;
  /**
   * Starts a worker that was scaled down again. False if it is gone for good. Without this method, none is
   * started again.
   */
  resume?(endpointId: string, workerId: string): Promise<boolean>;
}
