import type { NetworkVolume, VolumeType } from '../../domain/records.ts';
import { notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { auditEntry, diffRecords } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { VolumeContents } from './volume-contents.ts';
import type { VolumeUsage } from './volume-usage.ts';

export interface NewVolume {
  name: string;
  size: number;
  dataCenterId: string;
  /** The data center's first tier where nothing is said. */
  type?: VolumeType;
}

export interface VolumeUpdate {
  name?: string;
  size?: number;
}

/** Whether a growth may leave the size as it is: REST v2 says yes, the older interfaces no. */
export type ResizeRule = 'larger' | 'not-smaller';

const RESOURCE = 'network volume';
/** How long an answer waits for how much lies in a volume. */
const USAGE_TIMEOUT_MS = 1_000;

export class Volumes {
  readonly #context: ResourceContext;
  readonly #catalog: Catalog;
  readonly #contents: VolumeContents | undefined;

  /** Without contents, volumes are names alone. */
  constructor(context: ResourceContext, catalog: Catalog, contents?: VolumeContents) {
    this.#context = context;
    this.#catalog = catalog;
    this.#contents = contents;
  }

  async create(caller: Caller, { name, size, dataCenterId, type }: NewVolume): Promise<NetworkVolume> {
    const { store, clock, ids } = this.#context;
    const volume: NetworkVolume = {
      id: ids.resource(10),
      accountId: caller.accountId,
      name,
      size,
      dataCenterId,
      type: this.#tier(dataCenterId, type),
      createdAt: clock.now(),
    };
    await store.volumes.insert(volume, auditEntry(this.#context, caller, 'create', RESOURCE, volume.id));
    return volume;
  }

  async update(caller: Caller, id: string, change: VolumeUpdate, growth: ResizeRule): Promise<NetworkVolume> {
    const changed = await this.#context.store.volumes.change(caller.accountId, id, (current) => {
      const record = { ...current, ...change, size: resizedTo(current.size, change.size, growth) };
      return {
        record,
        audit: auditEntry(this.#context, caller, 'update', RESOURCE, id, diffRecords(current, record)),
      };
    });
    if (changed === undefined) throw notFound(RESOURCE, id);
    return changed;
  }

  async get(caller: Caller, id: string): Promise<NetworkVolume> {
    const found = await this.#context.store.volumes.find(caller.accountId, id);
    if (found === undefined) throw notFound(RESOURCE, id);
    return found;
  }

  list(caller: Caller): Promise<NetworkVolume[]> {
    return this.#context.store.volumes.list(caller.accountId);
  }

  async remove(caller: Caller, id: string): Promise<void> {
    const removed = await this.#context.store.volumes.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    if (!removed) throw notFound(RESOURCE, id);
    await this.#contents?.remove(id);
  }

  /** How much lies in each of these; null where counting takes too long to be waited for. The next who asks may know. */
  usages(volumes: readonly NetworkVolume[]): Promise<(VolumeUsage | null)[]> {
    const enough = new Promise<null>((resolve) => setTimeout(() => resolve(null), USAGE_TIMEOUT_MS).unref());
    return Promise.all(
      volumes.map((volume) => Promise.race([this.#contents?.usage(volume) ?? null, enough])),
    );
  }

  #tier(dataCenterId: string, wanted: VolumeType | undefined): VolumeType {
    const dataCenters = this.#catalog.dataCenters();
    const dataCenter = dataCenters.find(({ id }) => id === dataCenterId);
    if (dataCenter === undefined) {
      throw ruleError(
        `data center ${JSON.stringify(dataCenterId.slice(0, 64))} does not exist here; available: ${dataCenters.map(({ id }) => id).join(', ')}`,
      );
    }
    const type = wanted ?? dataCenter.networkVolumeTypes[0];
    if (type === undefined || !dataCenter.networkVolumeTypes.includes(type)) {
      throw ruleError(
        `data center ${dataCenterId} has no ${type ?? ''} network volumes; available: ${dataCenter.networkVolumeTypes.join(', ') || 'none'}`,
      );
    }
    return type;
  }
}

/** A volume only grows: data is never cut off. */
export function resizedTo(current: number, wanted: number | undefined, growth: ResizeRule): number {
  if (wanted === undefined) return current;
  if (wanted < current)
    throw ruleError(`a network volume cannot shrink: it has ${current} GB and ${wanted} GB were asked for`);
  if (wanted === current && growth === 'larger')
    throw ruleError(`the new size must be greater than the current size of ${current} GB`);
  return wanted;
}
