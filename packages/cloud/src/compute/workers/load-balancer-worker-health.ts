import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceAddress } from '../../engines/instance.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import type { WorkerTermination } from './worker-termination.ts';
import { isActive, type TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';
import { loadBalancerPorts } from './worker-spec.ts';

const CHECK_EVERY_MS = 5_000;
/** A worker that starts is asked much more often, at first: requests wait for it. */
const MIN_PROBE_PAUSE_MS = 10;
const MAX_PROBE_PAUSE_MS = 500;
const UNHEALTHY_AFTER_FAILURES = 3;
/** After so many it does not come back any more, and another takes its place. */
const REPLACE_AFTER_FAILURES = 6;

export type ProbeResult = 'ready' | 'starting' | 'unhealthy';

export interface LoadBalancerWorkerHealthDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  engines: ReadonlyMap<string, InstanceEngine>;
  /** Asks a worker how it is. */
  probe(host: string, port: number, path: string): Promise<ProbeResult>;
  /** How many requests the gateway has with a worker. */
  inFlight(endpointId: string, workerId: string): number;
  clock: Clock;
  log: Log;
}

/** Knows of the workers of load balancing endpoints whether they take requests: it asks them. */
export class LoadBalancerWorkerHealth {
  readonly #deps: LoadBalancerWorkerHealthDeps;

  constructor(deps: LoadBalancerWorkerHealthDeps) {
    this.#deps = deps;
  }

  /** Now and then; one that was not ready yet is asked until it is. One that an earlier server found ready has its strikes from the start: nothing else would notice that it hangs. */
  async check(member: TrackedWorker, endpoint: Endpoint, now: number): Promise<void> {
    const { registry, termination, inFlight } = this.#deps;
    member.busy = inFlight(endpoint.id, member.record.id) > 0;
    if (member.address === undefined) this.probeUntilReady(member, endpoint);
    if (member.address === undefined && member.record.state !== 'ready') return;
    if (now - member.checkedAt < CHECK_EVERY_MS) return;
    member.checkedAt = now;
    const { state, address } = await this.#ask(member, endpoint);
    if (state === 'ready') markHealthy(member, address);
    else member.strikes += 1;
    if (member.strikes >= UNHEALTHY_AFTER_FAILURES) member.unhealthy = 'its health check fails';
    if (member.strikes >= REPLACE_AFTER_FAILURES) void termination.drain(member, member.unhealthy);
    registry.changes.notify(endpoint.id);
  }

  /** Asks a worker that starts, or that an earlier server started, until it is ready. */
  probeUntilReady(member: TrackedWorker, endpoint: Endpoint): void {
    if (member.isProbing || member.record.handle === null) return;
    member.isProbing = true;
    this.#askUntilReady(member, endpoint)
      .catch((error: unknown) =>
        this.#deps.log.warn(
          { err: error, workerId: member.record.id },
          'a worker could not be asked how it is; trying again',
        ),
      )
      .finally(() => (member.isProbing = false));
  }

  async #askUntilReady(member: TrackedWorker, endpoint: Endpoint): Promise<void> {
    const { registry, clock } = this.#deps;
    for (
      let pauseMs = MIN_PROBE_PAUSE_MS;
      registry.isTracked(member) && isActive(member);
      pauseMs = Math.min(2 * pauseMs, MAX_PROBE_PAUSE_MS)
    ) {
      const { state, address } = await this.#ask(member, endpoint);
      if (state === 'ready' && isActive(member)) {
        const now = clock.now();
        markHealthy(member, address);
        Object.assign(member, { checkedAt: now, idleSince: now });
        if (member.record.state === 'starting') registry.markReady(member, now);
        return registry.changes.notify(endpoint.id);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #ask(
    { record }: TrackedWorker,
    endpoint: Endpoint,
  ): Promise<{ state: ProbeResult; address?: InstanceAddress }> {
    const { engines, probe } = this.#deps;
    const [port, healthPort] = loadBalancerPorts(endpoint);
    const engine = engines.get(record.dataCenterId);
    const address = await engine?.address(record.id, port);
    const asked = healthPort === port ? address : await engine?.address(record.id, healthPort);
    if (address === undefined || asked === undefined) return { state: 'unhealthy' };
    return {
      state: await probe(asked.host, asked.port, endpoint.env['HEALTH_CHECK_PATH'] ?? '/ping'),
      address,
    };
  }
}

/** It takes requests, whatever was the matter before. */
function markHealthy(member: TrackedWorker, address: InstanceAddress | undefined): void {
  Object.assign(member, { address, strikes: 0, unhealthy: null });
}
