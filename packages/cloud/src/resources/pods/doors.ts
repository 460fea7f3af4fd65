import type { InstanceEngine } from '../../engines/engine.ts';
import type { Address } from '../../engines/instance.ts';
import type { Pod, PodStatus, PodStore } from '../../store/pods.ts';
import type { Clock } from '../../support/clock.ts';
import { innerPort } from './inner-port.ts';

/** How old a pod may be that is taken for granted: another server may have changed it, and a wake-up may be lost. */
const MAX_AGE_MS = 1_000;
const MOST_KEPT = 10_000;

/** What is behind an HTTP port of a pod now. */
export type PodDoor =
  | { state: 'open'; address: Address }
  | { state: 'unknown-pod' }
  | { state: 'unknown-port'; ports: number[] }
  | { state: 'not-running'; status: PodStatus }
  | { state: 'silent' };

export interface PodDoorParts {
  store: Pick<PodStore, 'findAnywhere'>;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  clock: Clock;
}

/** Where the HTTP ports of pods are reached, for those who ask at every request. */
export class PodDoors {
  readonly #parts: PodDoorParts;
  readonly #kept = new Map<string, { at: number; found: Promise<Pod | undefined> }>();

  constructor(parts: PodDoorParts) {
    this.#parts = parts;
  }

  async find(podId: string, port: number): Promise<PodDoor> {
    const pod = await this.#pod(podId);
    if (pod === undefined || pod.wanted === 'terminated') return { state: 'unknown-pod' };
    const ports = httpPorts(pod);
    if (!ports.includes(port)) return { state: 'unknown-port', ports };
    const engine = this.#parts.engines.get(pod.dataCenterId);
    if (pod.status !== 'RUNNING' || engine === undefined) return { state: 'not-running', status: pod.status };
    const address = await engine.address(podId, innerPort(port, engine));
    return address === undefined ? { state: 'silent' } : { state: 'open', address };
  }

  /** A pod has changed. */
  forget(podId: string): void {
    this.#kept.delete(podId);
  }

  #pod(podId: string): Promise<Pod | undefined> {
    const now = this.#parts.clock.now();
    const kept = this.#kept.get(podId);
    if (kept !== undefined && Math.abs(now - kept.at) < MAX_AGE_MS) return kept.found;
    const found = this.#parts.store.findAnywhere(podId);
    const entry = { at: now, found };
    this.#kept.set(podId, entry);
    const drop = (): void => {
      if (this.#kept.get(podId) === entry) this.#kept.delete(podId);
    };
    // An id that nobody has is not kept: there is no end of those.
    found.then((pod) => pod ?? drop(), drop);
    if (this.#kept.size > MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value as string);
    return found;
  }
}

/** The numbers that a pod declares for HTTP. */
export function httpPorts({ ports }: Pick<Pod, 'ports'>): number[] {
  return ports.filter((entry) => entry.endsWith('/http')).map((entry) => Number.parseInt(entry, 10));
}
