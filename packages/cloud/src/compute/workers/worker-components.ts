import type { CloudEventBus } from '../../domain/events.ts';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Clock } from '../../support/clock.ts';
import type { Ids } from '../../support/ids.ts';
import type { Log } from '../../support/log.ts';
import { TICK_MS } from '../reconcile-settings.ts';
import type { Reconciler } from '../reconciler.ts';
import { EndpointRemovals } from './endpoint-removals.ts';
import { InFlightRequests } from './in-flight-requests.ts';
import { LoadBalancerPool } from './load-balancer-pool.ts';
import { LoadBalancerWorkerHealth, type ProbeResult } from './load-balancer-worker-health.ts';
import { QueueWorkerHealth } from './queue-worker-health.ts';
import { ScaleUpTrigger } from './scale-up-trigger.ts';
import { WorkerCandidates } from './worker-candidates.ts';
import { WorkerLauncher } from './worker-launcher.ts';
import { WorkerRegistry } from './worker-registry.ts';
import type { WorkerSpecSources } from './worker-spec-sources.ts';
import { WorkerTermination } from './worker-termination.ts';

export interface WorkerDeps extends WorkerSpecSources {
  store: WorkerStore;
  queue: JobQueue;
  events: CloudEventBus;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  /** Whether it manages the workers of this endpoint, where endpoints are divided among servers. Default: of all. */
  owns?(endpointId: string): boolean;
  endpoint(id: string): Promise<Endpoint | undefined>;
  /** How many of the wanted workers the limits of the account allow, and why not more. Default: all. */
  allowedWorkers?(endpoint: Endpoint, wanted: number): Promise<{ allowed: number; refusal?: Error }>;
  /**
   * Runs the work that counts the workers of an account and starts some, while no other server does that. Default: at
   * once, since this server starts all workers.
   */
  startingWorkers?(accountId: string, work: () => Promise<void>): Promise<void>;
  /** The health check of a load balancing worker. */
  probe(host: string, port: number, path: string): Promise<ProbeResult>;
  clock: Clock;
  ids: Ids;
  log: Log;
}

export interface WorkerComponents {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  removals: EndpointRemovals;
  candidates: WorkerCandidates;
  launcher: WorkerLauncher;
  queueHealth: QueueWorkerHealth;
  loadBalancerHealth: LoadBalancerWorkerHealth;
  scaleUpTrigger: ScaleUpTrigger;
  pool: LoadBalancerPool;
  requests: InFlightRequests;
  /** The workers as the leading server reported them, on a server that does not lead. */
  mirror: WorkerRegistry;
}

/** Wires the parts that manage workers. */
export function createWorkerComponents(deps: WorkerDeps, reconciler: Reconciler): WorkerComponents {
  const requests = new InFlightRequests();
  const registry = new WorkerRegistry(deps.store, deps.log, deps.events);
  const shared = {
    ...deps,
    registry,
    requests,
    reconcileQueue: reconciler.queue,
    specSources: deps,
    inFlight: (endpointId: string, workerId: string): number => requests.count(endpointId, workerId),
    isConnected: (dataCenterId: string): boolean => reconciler.isConnected(dataCenterId),
    isLeading: (): boolean => reconciler.isLeading,
  };
  const termination = new WorkerTermination(shared);
  const removals = new EndpointRemovals({ ...shared, termination });
  const candidates = new WorkerCandidates(shared);
  const loadBalancerHealth = new LoadBalancerWorkerHealth({ ...shared, termination });
  const launcher = new WorkerLauncher({ ...shared, termination, removals, loadBalancerHealth });
  return {
    registry,
    requests,
    mirror: new WorkerRegistry(deps.store, deps.log),
    termination,
    removals,
    candidates,
    launcher,
    queueHealth: new QueueWorkerHealth({ ...shared, termination }),
    loadBalancerHealth,
    scaleUpTrigger: new ScaleUpTrigger(registry, reconciler.queue, TICK_MS),
    pool: new LoadBalancerPool({ ...shared, termination, removals, candidates, launcher }),
  };
}
