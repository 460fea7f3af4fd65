import type { InstanceEngine } from '../../engines/engine.ts';
import type { Clock } from '../../support/clock.ts';
import { InstanceUsageCache } from '../instance-usage-cache.ts';
import { containerPort } from '../../domain/pods/container-port.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

const BYTES_PER_GB = 1024 ** 3;

export interface PodPort {
  private: number;
  /**
   * The port that is reachable from outside. Null for an HTTP port, which the gateway serves, and while
   * nothing listens.
   */
  public: number | null;
  type: 'http' | 'tcp';
  ip: string | null;
}

/** The usage and ports of a running pod. `cpu`, `memory`, `util` and `memoryUtil` are percentages. */
export interface PodRuntime {
  uptime: number;
  cpu: number;
  memory: number;
  gpus: { util: number; memoryUtil: number }[];
  ports: PodPort[];
}

/** Reads from the engine what the store does not hold: usage and addresses. */
export class PodRuntimeReader {
  readonly #engines: ReadonlyMap<string, InstanceEngine>;
  readonly #clock: Clock;
  readonly #usages = new InstanceUsageCache();

  /** `engines` by data center. */
  constructor(engines: ReadonlyMap<string, InstanceEngine>, clock: Clock) {
    this.#engines = engines;
    this.#clock = clock;
  }

  /** Null unless the pod runs. */
  async read(pod: Pod): Promise<PodRuntime | null> {
    const engine = this.#engines.get(pod.dataCenterId);
    if (pod.status !== 'RUNNING' || engine === undefined) return null;
    const [usage, ports] = await Promise.all([
      this.#usages.read(`${pod.id} ${pod.generation}`, () => engine.usage(pod.id)),
      this.ports(pod),
    ]);
    return {
      uptime: Math.max(0, Math.floor((this.#clock.now() - (pod.startedAt ?? this.#clock.now())) / 1000)),
      cpu: percentage(usage?.cpu ?? 0, pod.vcpuCount),
      memory: percentage((usage?.memoryInBytes ?? 0) / BYTES_PER_GB, pod.memoryInGb),
      gpus: Array.from(
        { length: pod.gpuCount },
        (_, index) => usage?.gpus[index] ?? { util: 0, memoryUtil: 0 },
      ),
      ports,
    };
  }

  /** The declared ports of a pod. Empty unless it runs. */
  async ports(pod: Pod): Promise<PodPort[]> {
    const engine = this.#engines.get(pod.dataCenterId);
    if (pod.status !== 'RUNNING' || engine === undefined) return [];
    return Promise.all(
      pod.ports.map(async (entry): Promise<PodPort> => {
        const port = Number.parseInt(entry, 10);
        if (entry.endsWith('/http')) return { private: port, public: null, type: 'http', ip: null };
        const address = await engine.address(pod.id, containerPort(port, engine));
        return { private: port, public: address?.port ?? null, type: 'tcp', ip: address?.host ?? null };
      }),
    );
  }
}

/** An instance may use more than it reserved, so the result is clamped to 100. */
function percentage(used: number, of: number): number {
  return of <= 0 ? 0 : Math.max(0, Math.min(100, Math.round((100 * used) / of)));
}
