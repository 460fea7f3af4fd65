import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceAddress } from '../../engines/instance.ts';
import { healthCheckPath } from '../../domain/endpoints/endpoint-defaults.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import { HEALTH_CHECK_INTERVAL_MS } from '../reconcile-settings.ts';
import type { WorkerTermination } from './worker-termination.ts';
import { isActive, type TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';
import { loadBalancerPorts } from './worker-spec.ts';

/** A starting worker is probed much more often, because requests wait for it. */
const MIN_PROBE_PAUSE_MS = 10;
const MAX_PROBE_PAUSE_MS = 500;
const UNHEALTHY_AFTER_FAILURES = 3;
/** It is drained then, and another worker takes its place. */
const REPLACE_AFTER_FAILURES = 6;

export type ProbeResult = 'ready' | 'starting' | 'unhealthy';

export interface LoadBalancerWorkerHealthDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  engines: ReadonlyMap<string, InstanceEngine>;
  /** The health check of a worker. */
  probe(host: string, port: number, path: string): Promise<ProbeResult>;
  /** How many requests the gateway has with a worker. */
  inFlight(endpointId: string, workerId: string): number;
  clock: Clock;
  log: Log;
}

/** Checks by HTTP whether the workers of load balancing endpoints take requests. */
export class LoadBalancerWorkerHealth {
  readonly #deps: LoadBalancerWorkerHealthDeps;

  constructor(deps: LoadBalancerWorkerHealthDeps) {
    this.#deps = deps;
  }

  /**
   * Checks a worker from time to time, and probes one that is not ready until it is. A worker that an earlier
   * server found ready counts failed checks from the start: nothing else would notice that it hangs.
   */
  async check(worker: TrackedWorker, endpoint: Endpoint, now: number): Promise<void> {
    const { registry, termination, inFlight } = this.#deps;
    worker.busy = inFlight(endpoint.id, worker.record.id) > 0;
    if (worker.address === undefined) this.probeUntilReady(worker, endpoint);
    if (worker.address === undefined && worker.record.state !== 'ready') return;
    if (now - worker.checkedAt < HEALTH_CHECK_INTERVAL_MS) return;
    worker.checkedAt = now;
    const { state, address } = await this.#probe(worker, endpoint);
    if (state === 'ready') markHealthy(worker, address);
    else worker.failedChecks += 1;
    if (worker.failedChecks >= UNHEALTHY_AFTER_FAILURES) worker.unhealthyReason = 'its health check fails';
    if (worker.failedChecks >= REPLACE_AFTER_FAILURES) void termination.drain(worker, worker.unhealthyReason);
    registry.changes.notify(endpoint.id);
  }

  probeUntilReady(worker: TrackedWorker, endpoint: Endpoint): void {
    if (worker.isProbing || worker.record.handle === null) return;
    worker.isProbing = true;
    this.#probeUntilReady(worker, endpoint)
      .catch((error: unknown) =>
        this.#deps.log.warn(
          { err: error, workerId: worker.record.id },
          'a worker could not be probed; trying again',
        ),
      )
      .finally(() => (worker.isProbing = false));
  }

  async #probeUntilReady(worker: TrackedWorker, endpoint: Endpoint): Promise<void> {
    const { registry, clock } = this.#deps;
    for (
      let pauseMs = MIN_PROBE_PAUSE_MS;
      registry.isTracked(worker) && isActive(worker);
      pauseMs = Math.min(2 * pauseMs, MAX_PROBE_PAUSE_MS)
    ) {
      const { state, address } = await this.#probe(worker, endpoint);
      if (state === 'ready' && isActive(worker)) {
        const now = clock.now();
        markHealthy(worker, address);
        worker.checkedAt = now;
        worker.idleSince = now;
        if (worker.record.state === 'starting') registry.markReady(worker, now);
        return registry.changes.notify(endpoint.id);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #probe(
    { record }: TrackedWorker,
    endpoint: Endpoint,
  ): Promise<{ state: ProbeResult; address?: InstanceAddress }> {
    const { engines, probe } = this.#deps;
    const [port, healthPort] = loadBalancerPorts(endpoint);
    const engine = engines.get(record.dataCenterId);
    const address = await engine?.address(record.id, port);
    const healthAddress = healthPort === port ? address : await engine?.address(record.id, healthPort);
    if (address === undefined || healthAddress === undefined) return { state: 'unhealthy' };
    return {
      state: await probe(healthAddress.host, healthAddress.port, healthCheckPath(endpoint.env)),
      address,
    };
  }
}

function markHealthy(worker: TrackedWorker, address: InstanceAddress | undefined): void {
  worker.address = address;
  worker.failedChecks = 0;
  worker.unhealthyReason = null;
}
