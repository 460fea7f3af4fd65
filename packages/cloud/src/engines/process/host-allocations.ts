import type { GpuAllocator } from '../gpu-allocator.ts';
import type { SavedInstance } from './instance-folder.ts';
import { removeMountLinks } from './mount-links.ts';
import { PortPool } from '../port-pool.ts';

type AllocatedInstance = Pick<SavedInstance, 'id' | 'gpus' | 'ports' | 'links'>;

/** The GPUs, ports and mount links that running instances hold on this host. */
export class HostAllocations {
  readonly gpus: GpuAllocator;
  readonly ports = new PortPool();
  readonly #links = new Map<string, Set<string>>();

  constructor(gpus: GpuAllocator) {
    this.gpus = gpus;
  }

  reserve({ id, gpus, ports, links }: AllocatedInstance): void {
    if (gpus !== null) this.gpus.reserve(id, gpus);
    this.ports.reserve(ports.map(({ hostPort }) => hostPort));
    for (const link of links) this.#links.set(link, (this.#links.get(link) ?? new Set()).add(id));
  }

  release({ id, ports, links }: AllocatedInstance): void {
    this.gpus.release(id);
    this.ports.release(ports.map(({ hostPort }) => hostPort));
    for (const link of links) {
      const users = this.#links.get(link);
      users?.delete(id);
      if (users !== undefined && users.size > 0) continue;
      this.#links.delete(link);
      removeMountLinks([link]);
    }
  }

  isMountLink(path: string): boolean {
    return this.#links.has(path);
  }
}
