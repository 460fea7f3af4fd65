import type { InstanceEngine } from '../../engines/engine.ts';
import type { Pod } from '../../store/pods.ts';
import type { Clock } from '../../support/clock.ts';
import { innerPort } from './inner-port.ts';

const BYTES_PER_GB = 1024 ** 3;

export interface PodPort {
  private: number;
  /** Where it is reached from outside; null for an HTTP port, which the gateway serves, and while nothing listens. */
  public: number | null;
  type: 'http' | 'tcp';
  ip: string | null;
}

/** How a running pod is at this moment. Shares are per cent. */
export interface PodRuntime {
  uptime: number;
  cpu: number;
  memory: number;
  gpus: { util: number; memoryUtil: number }[];
  ports: PodPort[];
}

/** What can only be asked of the engine. */
export class PodRuntimes {
  readonly #engines: ReadonlyMap<string, InstanceEngine>;
  readonly #clock: Clock;

  /** `engines` by data center. */
  constructor(engines: ReadonlyMap<string, InstanceEngine>, clock: Clock) {
    this.#engines = engines;
    this.#clock = clock;
  }

  /** Null unless it runs. */
  async of(pod: Pod): Promise<PodRuntime | null> {
    const engine = this.#engines.get(pod.dataCenterId);
    if (pod.status !== 'RUNNING' || engine === undefined) return null;
    const [usage, ports] = await Promise.all([engine.usage(pod.id), this.ports(pod)]);
    return {
      uptime: Math.max(0, Math.floor((this.#clock.now() - (pod.startedAt ?? this.#clock.now())) / 1000)),
      cpu: share(usage?.cpu ?? 0, pod.vcpuCount),
      memory: share((usage?.memoryInBytes ?? 0) / BYTES_PER_GB, pod.memoryInGb),
      gpus: Array.from({ length: pod.gpuCount }, () => ({ util: 0, memoryUtil: 0 })),
      ports,
    };
  }

  /** Its declared ports. None while it does not run. */
  async ports(pod: Pod): Promise<PodPort[]> {
    const engine = this.#engines.get(pod.dataCenterId);
    if (pod.status !== 'RUNNING' || engine === undefined) return [];
    return Promise.all(pod.ports.map(async (entry): Promise<PodPort> => {
      const port = Number.parseInt(entry, 10);
      if (entry.endsWith('/http')) return { private: port, public: null, type: 'http', ip: null };
      const address = await engine.address(pod.id, innerPort(port, engine));
      return { private: port, public: address?.port ?? null, type: 'tcp', ip: address?.host ?? null };
    }));
  }
}

/** An instance may use more than it was promised; nobody shows more than all. */
function share(used: number, of: number): number {
  return of <= 0 ? 0 : Math.max(0, Math.min(100, Math.round((100 * used) / of)));
}
