import type { InstanceEngine } from '../../engines/engine.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Ids } from '../../support/ids.ts';
import type { Log } from '../../support/log.ts';
import type { LoadBalancerWorkerHealth } from './load-balancer-worker-health.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { newWorker } from './new-worker.ts';
import type { WorkerPlacement } from '../../domain/placement/worker-placement.ts';
import { buildWorkerSpec } from './worker-spec-sources.ts';
import type { WorkerSpecSources } from './worker-spec-sources.ts';
import type { EndpointRemovals } from './endpoint-removals.ts';
import type { WorkerRegistry } from './worker-registry.ts';

export interface WorkerLauncherDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  removals: EndpointRemovals;
  loadBalancerHealth: LoadBalancerWorkerHealth;
  engines: ReadonlyMap<string, InstanceEngine>;
  specSources: WorkerSpecSources;
  clock: Clock;
  ids: Ids;
  log: Log;
}

/** Starts single workers. */
export class WorkerLauncher {
  readonly #deps: WorkerLauncherDeps;

  constructor(deps: WorkerLauncherDeps) {
    this.#deps = deps;
  }

  /** The worker is tracked from now on. Its start continues in the background. */
  launch(endpoint: Endpoint, placement: WorkerPlacement, id = this.#deps.ids.resource()): void {
    const { registry, clock, log } = this.#deps;
    const worker = registry.getOrCreate(endpoint.id).add(newWorker(id, endpoint, placement, clock.now()));
    worker.launching = this.#start(worker, endpoint, placement)
      .catch((error: unknown) => this.#handleFailure(worker, error))
      .catch((error: unknown) => log.error({ err: error }, 'a worker could not be started'));
  }

  /**
   * The record is stored before the engine is asked, so that a crash in between leaves no unknown instance.
   */
  async #start(worker: TrackedWorker, endpoint: Endpoint, placement: WorkerPlacement): Promise<void> {
    const { registry, removals, loadBalancerHealth, engines, specSources, clock } = this.#deps;
    const [spec] = await Promise.all([
      buildWorkerSpec(worker, endpoint, placement, specSources, () => {
        worker.record = { ...worker.record, imageReadyAt: clock.now() };
      }),
      registry.save(worker),
    ]);
    if (removals.isRemoving(endpoint.id)) return;
    const engine = engines.get(placement.dataCenterId);
    const handle = await engine?.start(spec);
    const instance = handle && (await engine?.adopt(handle));
    if (worker.record.endedAt !== null || handle === undefined || removals.isRemoving(endpoint.id)) return;
    // Another server leads by now, and finds the instance.
    if (!registry.isTracked(worker)) return;
    // It is billed from the start that its engine reports, not from when this server saw it. Kubernetes reports
    // whole seconds, so that a start may seem to come before what led to it.
    const { createdAt, imageReadyAt } = worker.record;
    const startedAt = Math.max(createdAt, instance?.startedAt ?? clock.now());
    worker.runningSince = startedAt;
    worker.record = {
      ...worker.record,
      handle: JSON.stringify(handle),
      startedAt,
      imageReadyAt: imageReadyAt === null ? null : Math.min(imageReadyAt, startedAt),
    };
    if (endpoint.type === 'LOAD_BALANCER') loadBalancerHealth.probeUntilReady(worker, endpoint);
    await registry.save(worker);
  }

  /** Missing capacity does not count as a crash. */
  async #handleFailure(worker: TrackedWorker, error: unknown): Promise<void> {
    const { registry, termination, removals, log } = this.#deps;
    const { id, endpointId, endedAt } = worker.record;
    if (removals.isRemoving(endpointId) || endedAt !== null || !registry.isTracked(worker)) return;
    const reason = error instanceof Error ? error.message : String(error);
    log.info({ endpointId, workerId: id, reason }, 'a worker did not start');
    if (!(error instanceof BerthError && error.code === 'capacity'))
      return termination.handleExit(worker, { reason });
    registry.find(endpointId)?.setPlacementFailure(1, reason);
    await termination.terminate(worker, { reason });
  }
}
