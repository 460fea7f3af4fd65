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

/** Brings single workers about. */
export class WorkerLauncher {
  readonly #deps: WorkerLauncherDeps;

  constructor(deps: WorkerLauncherDeps) {
    this.#deps = deps;
  }

  /** The worker counts from now on; that it comes to run goes on by itself. */
  launch(endpoint: Endpoint, where: WorkerPlacement, id = this.#deps.ids.resource()): void {
    const { registry, clock, log } = this.#deps;
    const member = registry.getOrCreate(endpoint.id).add(newWorker(id, endpoint, where, clock.now()));
    member.launching = this.#bringAbout(member, endpoint, where)
      .catch((error: unknown) => this.#failed(member, error))
      .catch((error: unknown) => log.error({ err: error }, 'a worker could not be started'));
  }

  /** It is written down before it is there, and what it needs is gathered meanwhile. */
  async #bringAbout(member: TrackedWorker, endpoint: Endpoint, where: WorkerPlacement): Promise<void> {
    const { registry, removals, loadBalancerHealth, engines, specSources, clock } = this.#deps;
    const [spec] = await Promise.all([
      buildWorkerSpec(member, endpoint, where, specSources),
      registry.save(member),
    ]);
    if (removals.isRemoving(endpoint.id)) return;
    const handle = await engines.get(where.dataCenterId)?.start(spec);
    if (member.record.endedAt !== null || handle === undefined || removals.isRemoving(endpoint.id)) return;
    member.runningSince = clock.now();
    member.record = { ...member.record, handle: JSON.stringify(handle), startedAt: member.runningSince };
    if (endpoint.type === 'LOAD_BALANCER') loadBalancerHealth.probeUntilReady(member, endpoint);
    await registry.save(member);
  }

  /** That there is no room after all is nobody's mishap. */
  async #failed(member: TrackedWorker, error: unknown): Promise<void> {
    const { registry, termination, removals, log } = this.#deps;
    const { id, endpointId, endedAt } = member.record;
    if (removals.isRemoving(endpointId) || endedAt !== null || !registry.isTracked(member)) return;
    const reason = error instanceof Error ? error.message : String(error);
    log.info({ endpointId, workerId: id, reason }, 'a worker did not start');
    if (!(error instanceof BerthError && error.code === 'capacity'))
      return termination.handleExit(member, { reason });
    registry.find(endpointId)?.setPlacementFailure(1, reason);
    await termination.terminate(member, { reason });
  }
}
