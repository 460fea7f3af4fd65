import type { GpuShelf } from '../gpu-shelf.ts';
import type { SavedInstance } from './instance-folder.ts';
import { removeLinks } from './mounts.ts';
import { PortPool } from '../port-pool.ts';

type Held = Pick<SavedInstance, 'id' | 'gpus' | 'ports' | 'links'>;

/** What running instances hold of the machine. */
export class Holdings {
  readonly gpus: GpuShelf;
  readonly ports = new PortPool();
  readonly #links = new Map<string, Set<string>>();

  constructor(gpus: GpuShelf) {
    this.gpus = gpus;
  }

  hold({ id, gpus, ports, links }: Held): void {
    if (gpus !== null) this.gpus.hold(id, gpus);
    this.ports.hold(ports.map(({ hostPort }) => hostPort));
    for (const link of links) this.#links.set(link, (this.#links.get(link) ?? new Set()).add(id));
  }

  release({ id, ports, links }: Held): void {
    this.gpus.release(id);
    this.ports.release(ports.map(({ hostPort }) => hostPort));
    for (const link of links) {
      const users = this.#links.get(link);
      users?.delete(id);
      if (users !== undefined && users.size > 0) continue;
      this.#links.delete(link);
      removeLinks([link]);
    }
  }

  isLink(path: string): boolean {
    return this.#links.has(path);
  }
}
