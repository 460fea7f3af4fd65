import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceAddress } from '../../engines/instance.ts';
import type { PodStore } from '../../store/pod-store.ts';
import type { Clock } from '../../support/clock.ts';
import { containerPort } from '../../domain/pods/container-port.ts';
import type { Pod, PodStatus } from '../../domain/pods/pod-record.ts';

/** How long a pod record is cached: another server may have changed it, and a notification may be lost. */
const MAX_AGE_MS = 1_000;
const MAX_ENTRIES = 10_000;

/** The target of an HTTP port of a pod at this moment. */
export type PodPortTarget =
  | { state: 'open'; address: InstanceAddress; accountId: string }
  | { state: 'unknown-pod' }
  | { state: 'unknown-port'; ports: number[] }
  | { state: 'not-running'; status: PodStatus }
  | { state: 'silent' };

export interface PodPortResolverDeps {
  store: Pick<PodStore, 'findInAnyAccount'>;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  clock: Clock;
}

/** Resolves the HTTP ports of pods to addresses, with a cache, because the gateway asks at every request. */
export class PodPortResolver {
  readonly #deps: PodPortResolverDeps;
  readonly #cached = new Map<string, { at: number; found: Promise<Pod | undefined> }>();

  constructor(deps: PodPortResolverDeps) {
    this.#deps = deps;
  }

  async resolve(podId: string, port: number): Promise<PodPortTarget> {
    const pod = await this.#pod(podId);
    if (pod === undefined || pod.wanted === 'terminated') return { state: 'unknown-pod' };
    const ports = httpPorts(pod);
    if (!ports.includes(port)) return { state: 'unknown-port', ports };
    const engine = this.#deps.engines.get(pod.dataCenterId);
    if (pod.status !== 'RUNNING' || engine === undefined) return { state: 'not-running', status: pod.status };
    const address = await engine.address(podId, containerPort(port, engine));
    return address === undefined ? { state: 'silent' } : { state: 'open', address, accountId: pod.accountId };
  }

  /** Called when a pod has changed. */
  invalidate(podId: string): void {
    this.#cached.delete(podId);
  }

  #pod(podId: string): Promise<Pod | undefined> {
    const now = this.#deps.clock.now();
    const cached = this.#cached.get(podId);
    if (cached !== undefined && Math.abs(now - cached.at) < MAX_AGE_MS) return cached.found;
    const found = this.#deps.store.findInAnyAccount(podId);
    const entry = { at: now, found };
    this.#cached.set(podId, entry);
    const drop = (): void => {
      if (this.#cached.get(podId) === entry) this.#cached.delete(podId);
    };
    // Unknown ids are not cached: there is no limit to their number.
    found.then((pod) => pod ?? drop(), drop);
    if (this.#cached.size > MAX_ENTRIES) this.#cached.delete(this.#cached.keys().next().value as string);
    return found;
  }
}

/** The HTTP ports that a pod declares. */
function httpPorts({ ports }: Pick<Pod, 'ports'>): number[] {
  return ports.filter((entry) => entry.endsWith('/http')).map((entry) => Number.parseInt(entry, 10));
}
