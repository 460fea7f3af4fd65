import type { FastifyBaseLogger } from 'fastify';
import type { Endpoint } from '../../domain/records.ts';
import { notFound } from '../../support/errors.ts';
import { isStrictAffinity } from './worker-affinity.ts';
import type { WorkerAffinity } from './worker-affinity.ts';
import type { GatewayLimits } from './gateway-limits.ts';
import type { Upstream, WorkerPool } from '../../domain/endpoints/worker-pool.ts';
import type { GatewayError } from './gateway.errors.ts';
import { noWorkers, workerGone, workerTimeout } from './gateway.errors.ts';

/** Waiting requests are checked again this often, even without a notification. */
const RECHECK_MS = 10_000;

/** The fields of an endpoint that matter for balancing. */
export type BalancedEndpoint = Pick<Endpoint, 'id' | 'scalerType' | 'scalerValue'>;

export interface LoadBalancerDeps {
  pool: WorkerPool;
  /** The current endpoints. */
  endpoints: { find(id: string): Promise<BalancedEndpoint | undefined> };
  limits: GatewayLimits;
  log: FastifyBaseLogger;
  /** A request waited for a worker, with success or not. */
  onHeld?: ((milliseconds: number) => void) | undefined;
}

/** A request on its way to a worker. */
export interface PendingRequest {
  /** As it was when the request arrived. */
  endpoint: BalancedEndpoint;
  affinity: WorkerAffinity | undefined;
  /** Its place in the order of arrival. */
  sequence: number;
  /** When it stops waiting for a worker, in the time of `performance.now()`. */
  deadline: number;
}

/** One request's hold on a worker. */
export interface WorkerSlot {
  worker: Upstream;
  /** The request is over. May be called twice. */
  release(): void;
}

interface WaitingRequest {
  request: PendingRequest;
  assign(slot: WorkerSlot): void;
  reject(error: Error): void;
}

/** The requests of one endpoint. */
interface EndpointRequests {
  endpointId: string;
  /** How many requests one worker gets at the same time, by the latest configuration. */
  maxPerWorker: number;
  /** Requests in flight by worker. */
  loads: Map<string, number>;
  inFlight: number;
  /** In order of arrival. */
  waiting: Set<WaitingRequest>;
  /** The highest sequence number that has waited. */
  highestSequence: number;
  /** Set while the pool is watched for waiting requests. */
  watch: AbortController | undefined;
  /** Workers that refused a connection a short time ago. */
  unreachable: Set<string>;
}

/**
 * Gives every request a worker: the least loaded of those that are ready and have capacity. The
 * capacity of a worker is the endpoint's scaler value. If none has capacity, requests wait in
 * order of arrival, up to a number and a time.
 */
export class LoadBalancer {
  readonly #pool: WorkerPool;
  readonly #endpoints: LoadBalancerDeps['endpoints'];
  readonly #limits: GatewayLimits;
  readonly #log: FastifyBaseLogger;
  readonly #onHeld: LoadBalancerDeps['onHeld'];
  readonly #byEndpoint = new Map<string, EndpointRequests>();
  /** Where the next search begins, so that workers with equal load take turns. */
  #turn = 0;
  #arrivals = 0;
  #closed = false;

  constructor({ pool, endpoints, limits, log, onHeld }: LoadBalancerDeps) {
    this.#onHeld = onHeld;
    this.#pool = pool;
    this.#endpoints = endpoints;
    this.#limits = limits;
    this.#log = log;
  }

  /** Called when a request arrives: its place in the order and its deadline are set. */
  register(endpoint: BalancedEndpoint, affinity: WorkerAffinity | undefined): PendingRequest {
    this.#arrivals += 1;
    this.#applyConfig(this.#requestsOf(endpoint), endpoint);
    const { waitMs, strictWaitMs } = this.#limits;
    return {
      endpoint,
      affinity,
      sequence: this.#arrivals,
      deadline: performance.now() + (isStrictAffinity(affinity) ? strictWaitMs : waitMs),
    };
  }

  /** A slot at once, if one is free and no request waits. */
  tryAcquire({ endpoint, affinity }: PendingRequest): WorkerSlot | undefined {
    const requests = this.#requestsOf(endpoint);
    if (requests.waiting.size > 0 || this.#closed) return undefined;
    const worker = this.#choose(requests, affinity);
    return worker === undefined ? undefined : this.#assignSlot(requests, worker, true);
  }

  /** Waits for a slot. Throws if too many wait, the time is over or the requested worker is gone. */
  async acquire(request: PendingRequest, signal: AbortSignal): Promise<WorkerSlot> {
    const start = performance.now();
    try {
      await this.#ensureWorker(request);
      const requests = this.#requestsOf(request.endpoint);
      if (requests.waiting.size >= this.#limits.maxWaiting) throw noWorkers();
      return await this.#waitForSlot(requests, request, signal);
    } finally {
      this.#onHeld?.(performance.now() - start);
    }
  }

  /**
   * A slot at another worker, for a request whose worker could not be reached. If there is none,
   * it waits again at its old place, for the rest of its time, however many wait.
   */
  async reacquire(request: PendingRequest, slot: WorkerSlot, signal: AbortSignal): Promise<WorkerSlot> {
    const requests = this.#requestsOf(request.endpoint);
    this.#skipUnreachable(requests, slot.worker.id);
    const other = this.#choose(requests, request.affinity);
    const taken = other === undefined ? undefined : this.#assignSlot(requests, other, true);
    slot.release();
    if (taken !== undefined) return taken;
    await this.#ensureWorker(request);
    return this.#waitForSlot(this.#requestsOf(request.endpoint), request, signal);
  }

  /**
   * An endpoint was changed or removed: applies that to waiting requests. Without an id, all endpoints are
   * checked.
   */
  refreshEndpoint(endpointId?: string): void {
    for (const requests of this.#byEndpoint.values())
      if (requests.waiting.size > 0 && (endpointId ?? requests.endpointId) === requests.endpointId)
        void this.#refresh(requests);
  }

  /** How many requests each worker of an endpoint has in flight. */
  inFlightByWorker(endpointId: string): ReadonlyMap<string, number> {
    return this.#byEndpoint.get(endpointId)?.loads ?? new Map();
  }

  /** Requests in flight and waiting. */
  demand(endpointId: string): number {
    const requests = this.#byEndpoint.get(endpointId);
    return requests === undefined ? 0 : requests.inFlight + requests.waiting.size;
  }

  /** Requests that wait for a worker, of all endpoints. */
  get held(): number {
    return this.#byEndpoint.values().reduce((count, { waiting }) => count + waiting.size, 0);
  }

  /** Rejects waiting and new requests. */
  close(): void {
    this.#closed = true;
    for (const requests of this.#byEndpoint.values())
      for (const waiting of [...requests.waiting]) waiting.reject(noWorkers());
  }

  #waitForSlot(
    requests: EndpointRequests,
    request: PendingRequest,
    signal: AbortSignal,
  ): Promise<WorkerSlot> {
    const left = request.deadline - performance.now();
    if (this.#closed || signal.aborted || left <= 0) {
      this.#removeIfIdle(requests);
      throw left <= 0 ? waitTimeoutError(request) : noWorkers();
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abandoned);
        requests.waiting.delete(waiting);
        if (requests.waiting.size > 0) return;
        requests.watch?.abort();
        requests.watch = undefined;
      };
      const waiting: WaitingRequest = {
        request,
        assign: (slot) => {
          leave();
          resolve(slot);
        },
        reject: (error) => {
          leave();
          this.#reportDemand(requests);
          this.#removeIfIdle(requests);
          reject(error);
        },
      };
      const timer = setTimeout(() => waiting.reject(waitTimeoutError(request)), left);
      const abandoned = (): void => waiting.reject(noWorkers());
      signal.addEventListener('abort', abandoned, { once: true });
      enqueue(requests, waiting);
      this.#reportDemand(requests);
      if (requests.watch === undefined) void this.#watch(requests);
      else this.#admitWaiting(requests);
    });
  }

  /** The worker that a request insists on must exist, or be resumed. */
  async #ensureWorker({ endpoint, affinity }: PendingRequest): Promise<void> {
    if (!isStrictAffinity(affinity) || this.#exists(endpoint.id, affinity.workerId)) return;
    const resumed =
      affinity.kind === 'strict-resume' &&
      ((await this.#pool.resume?.(endpoint.id, affinity.workerId)) ?? false);
    if (!resumed) throw workerGone(affinity.workerId);
  }

  #exists(endpointId: string, workerId: string): boolean {
    return (
      this.#pool.ready(endpointId).some(({ id }) => id === workerId) ||
      (this.#pool.exists?.(endpointId, workerId) ?? false)
    );
  }

  #choose(requests: EndpointRequests, affinity: WorkerAffinity | undefined): Upstream | undefined {
    const { maxPerWorker } = requests;
    const ready = this.#pool.ready(requests.endpointId);
    if (affinity !== undefined) {
      const wanted = ready.find(({ id }) => id === affinity.workerId);
      if (
        wanted !== undefined &&
        !requests.unreachable.has(wanted.id) &&
        (requests.loads.get(wanted.id) ?? 0) < maxPerWorker
      )
        return wanted;
      if (isStrictAffinity(affinity)) return undefined;
    }
    const count = ready.length;
    if (count > 1) this.#turn = (this.#turn + 1) % 0x40000000;
    let best: Upstream | undefined;
    let least = maxPerWorker;
    for (let step = 0; step < count && least > 0; step += 1) {
      const worker = ready[(this.#turn + step) % count] as Upstream;
      const load = requests.loads.get(worker.id) ?? 0;
      if (load >= least || requests.unreachable.has(worker.id)) continue;
      best = worker;
      least = load;
    }
    return best;
  }

  /**
   * Skips a worker for a while, even if it is the only one: it may have ended, which is known a moment later.
   */
  #skipUnreachable(requests: EndpointRequests, workerId: string): void {
    if (requests.unreachable.has(workerId)) return;
    this.#log.info({ endpointId: requests.endpointId, workerId }, 'a ready worker cannot be reached');
    requests.unreachable.add(workerId);
    const over = (): void => {
      requests.unreachable.delete(workerId);
      this.#admitWaiting(requests);
      this.#removeIfIdle(requests);
    };
    setTimeout(over, this.#limits.unreachableMs).unref();
  }

  #assignSlot(requests: EndpointRequests, worker: Upstream, isNew: boolean): WorkerSlot {
    const { endpointId } = requests;
    const loadBefore = requests.loads.get(worker.id) ?? 0;
    requests.loads.set(worker.id, loadBefore + 1);
    requests.inFlight += 1;
    this.#pool.reportActivity(endpointId, worker.id, loadBefore + 1);
    if (isNew) this.#reportDemand(requests);
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      requests.inFlight -= 1;
      const load = (requests.loads.get(worker.id) ?? 1) - 1;
      if (load === 0) requests.loads.delete(worker.id);
      else requests.loads.set(worker.id, load);
      this.#pool.reportActivity(endpointId, worker.id, load);
      this.#reportDemand(requests);
      if (requests.waiting.size > 0) this.#admitWaiting(requests);
      else this.#removeIfIdle(requests);
    };
    return { worker, release: leave };
  }

  #admitWaiting(requests: EndpointRequests): void {
    let full = false;
    for (const waiting of requests.waiting) {
      const { affinity } = waiting.request;
      if (full && !isStrictAffinity(affinity)) continue;
      const worker = this.#choose(requests, affinity);
      if (worker !== undefined) waiting.assign(this.#assignSlot(requests, worker, false));
      else if (!isStrictAffinity(affinity)) full = true;
      else if (!this.#exists(requests.endpointId, affinity.workerId))
        waiting.reject(workerGone(affinity.workerId));
    }
  }

  /** Applies the configuration of an endpoint. */
  #applyConfig(requests: EndpointRequests, endpoint: BalancedEndpoint): void {
    const before = requests.maxPerWorker;
    requests.maxPerWorker = maxRequestsPerWorker(endpoint);
    if (requests.maxPerWorker > before && requests.waiting.size > 0) this.#admitWaiting(requests);
  }

  /** If the endpoint cannot be read, its last known configuration stays in use. */
  async #refresh(requests: EndpointRequests): Promise<void> {
    const { endpointId } = requests;
    try {
      const endpoint = await this.#endpoints.find(endpointId);
      if (endpoint !== undefined) this.#applyConfig(requests, endpoint);
      else for (const waiting of [...requests.waiting]) waiting.reject(notFound('endpoint', endpointId));
    } catch (error) {
      this.#log.warn({ err: error, endpointId }, 'an endpoint with waiting requests cannot be read');
    }
  }

  /** Assigns workers whenever the pool changes, as long as requests wait. */
  async #watch(requests: EndpointRequests): Promise<void> {
    const watching = new AbortController();
    requests.watch = watching;
    try {
      while (requests.watch === watching) {
        // Subscribed before the check, so that no change in between is missed.
        const changed = this.#pool.waitForChange(requests.endpointId, RECHECK_MS, watching.signal);
        this.#admitWaiting(requests);
        await this.#refresh(requests);
        await changed;
      }
    } catch (error) {
      this.#log.error(
        { err: error, endpointId: requests.endpointId },
        'the workers of an endpoint cannot be watched; its waiting requests are rejected',
      );
      for (const waiting of [...requests.waiting]) waiting.reject(noWorkers());
    }
  }

  #requestsOf(endpoint: BalancedEndpoint): EndpointRequests {
    const endpointId = endpoint.id;
    let requests = this.#byEndpoint.get(endpointId);
    if (requests === undefined) {
      requests = {
        endpointId,
        maxPerWorker: maxRequestsPerWorker(endpoint),
        loads: new Map(),
        inFlight: 0,
        waiting: new Set(),
        highestSequence: 0,
        watch: undefined,
        unreachable: new Set(),
      };
      this.#byEndpoint.set(endpointId, requests);
    }
    return requests;
  }

  #removeIfIdle(requests: EndpointRequests): void {
    if (requests.inFlight === 0 && requests.waiting.size === 0 && requests.unreachable.size === 0)
      this.#byEndpoint.delete(requests.endpointId);
  }

  #reportDemand(requests: EndpointRequests): void {
    this.#pool.reportDemand(requests.endpointId, requests.inFlight + requests.waiting.size);
  }
}

function waitTimeoutError({ affinity }: PendingRequest): GatewayError {
  return isStrictAffinity(affinity) ? workerTimeout(affinity.workerId) : noWorkers();
}

/** New requests go to the end; one that waits again returns to its old place. */
function enqueue(requests: EndpointRequests, waiting: WaitingRequest): void {
  requests.waiting.add(waiting);
  const { sequence } = waiting.request;
  if (sequence > requests.highestSequence) requests.highestSequence = sequence;
  else
    requests.waiting = new Set(
      [...requests.waiting].sort((one, other) => one.request.sequence - other.request.sequence),
    );
}

/** How many requests one worker gets at the same time. */
function maxRequestsPerWorker({ scalerType, scalerValue }: BalancedEndpoint): number {
  return scalerType === 'REQUEST_COUNT' ? Math.max(1, Math.floor(scalerValue)) : 1;
}
