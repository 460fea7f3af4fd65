import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceAddress } from '../../engines/instance.ts';
import type { PodStore } from '../../store/pod-store.ts';
import type { Clock } from '../../support/clock.ts';
import { containerPort } from '../../domain/pods/container-port.ts';
import type { Pod, PodStatus } from '../../domain/pods/pod-record.ts';

/** How old a pod may be that is taken for granted: another server may have changed it, and a wake-up may be lost. */
const MAX_AGE_MS = 1_000;
const MAX_ENTRIES = 10_000;

/** What is behind an HTTP port of a pod now. */
export type PodPortTarget =
  | { state: 'open'; address: InstanceAddress }
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

/** Where the HTTP ports of pods are reached, for those who ask at every request. */
export class PodPortResolver {
  readonly #deps: PodPortResolverDeps;
  readonly #kept = new Map<string, { at: number; found: Promise<Pod | undefined> }>();

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
    return address === undefined ? { state: 'silent' } : { state: 'open', address };
  }

  /** A pod has changed. */
  invalidate(podId: string): void {
    this.#kept.delete(podId);
  }

  #pod(podId: string): Promise<Pod | undefined> {
    const now = this.#deps.clock.now();
    const kept = this.#kept.get(podId);
    if (kept !== undefined && Math.abs(now - kept.at) < MAX_AGE_MS) return kept.found;
    const found = this.#deps.store.findInAnyAccount(podId);
    const entry = { at: now, found };
    this.#kept.set(podId, entry);
    const drop = (): void => {
      if (this.#kept.get(podId) === entry) this.#kept.delete(podId);
    };
    // An id that nobody has is not kept: there is no end of those.
    found.then((pod) => pod ?? drop(), drop);
    if (this.#kept.size > MAX_ENTRIES) this.#kept.delete(this.#kept.keys().next().value as string);
    return found;
  }
}

/** The numbers that a pod declares for HTTP. */
export function httpPorts({ ports }: Pick<Pod, 'ports'>): number[] {
  return ports.filter((entry) => entry.endsWith('/http')).map((entry) => Number.parseInt(entry, 10));
}
