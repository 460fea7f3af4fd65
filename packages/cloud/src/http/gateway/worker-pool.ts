/** A worker that takes requests, and where it listens. */
export interface Upstream {
  id: string;
  host: string;
  port: number;
}

/** The workers of load balancing endpoints, as whoever runs them shows them to the gateway. */
export interface WorkerPool {
  /** Those whose health check says that they take requests. Asked at every request, so it answers from memory. */
  ready(endpointId: string): readonly Upstream[];
  /** Resolves when the list of an endpoint has changed, when the time is over, or when the caller gives up. */
  waitForChange(endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void>;
  /** How many requests an endpoint has: in flight and waiting. Told at every change. */
  demand(endpointId: string, requests: number): void;
  /** A worker was given a request, or is done with one: so many are in flight now, and its idle time starts anew. */
  touched(endpointId: string, workerId: string, inFlight: number): void;
  /** Whether a worker that is not ready is still there and may become so. Without this, a worker that is not ready counts as gone. */
  exists?(endpointId: string, workerId: string): boolean;
  /** Starts a worker again that was scaled down: from then on it is there, and will be ready. False where it is gone for good. Without this, none comes back. */
  resume?(endpointId: string, workerId: string): Promise<boolean>;
}
