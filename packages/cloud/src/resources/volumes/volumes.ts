import type { NetworkVolume, VolumeType } from '../../domain/records.ts';
import { notFound, ruleError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { VOLUME_BYTES_PER_GB } from '../../domain/quotas.ts';
import { auditEntry, diffRecords, withinQuotas } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { VolumeContents } from './volume-contents.ts';
import type { VolumeUsage } from './volume-usage.ts';

export interface NewVolume {
  name: string;
  size: number;
  dataCenterId: string;
  /** Default: the first volume type of the data center. */
  type?: VolumeType;
}

export interface VolumeUpdate {
  name?: string;
  size?: number;
}

/** Whether a resize to the current size is allowed: in REST v2 it is, in the older interfaces it is not. */
export type ResizeRule = 'larger' | 'not-smaller';

const RESOURCE = 'network volume';
/** How long a response waits for the measurement of a volume's usage. */
const USAGE_TIMEOUT_MS = 1_000;

export class Volumes {
  readonly #context: ResourceContext;
  readonly #catalog: Catalog;
  readonly #contents: VolumeContents | undefined;

  /** Without `contents`, only the records of volumes are managed. */
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
    await withinQuotas(this.#context, caller.accountId, { volumeBytes: size * VOLUME_BYTES_PER_GB }, () =>
      store.volumes.insert(volume, auditEntry(this.#context, caller, 'create', RESOURCE, volume.id)),
    );
    await this.#contents?.create(volume);
    this.#announce(caller, volume.id);
    return volume;
  }

  async update(caller: Caller, id: string, change: VolumeUpdate, rule: ResizeRule): Promise<NetworkVolume> {
    const before = change.size === undefined ? undefined : await this.get(caller, id);
    const added = Math.max(0, (change.size ?? 0) - (before?.size ?? 0)) * VOLUME_BYTES_PER_GB;
    const write = async (): Promise<NetworkVolume | undefined> => {
      // Before the record: a size that the storage refuses is not kept.
      const size = before === undefined ? undefined : resizedTo(before.size, change.size, rule);
      if (before !== undefined && size !== undefined && size > before.size)
        await this.#contents?.grow({ ...before, size });
      return this.#context.store.volumes.change(caller.accountId, id, (current) => {
        const record = { ...current, ...change, size: resizedTo(current.size, change.size, rule) };
        return {
          record,
          audit: auditEntry(this.#context, caller, 'update', RESOURCE, id, diffRecords(current, record)),
        };
      });
    };
    const changed = await withinQuotas(this.#context, caller.accountId, { volumeBytes: added }, write);
    if (changed === undefined) throw notFound(RESOURCE, id);
    this.#announce(caller, id);
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
    const volume = await this.get(caller, id);
    const removed = await this.#context.store.volumes.remove(
      caller.accountId,
      id,
      auditEntry(this.#context, caller, 'delete', RESOURCE, id),
    );
    if (!removed) throw notFound(RESOURCE, id);
    this.#announce(caller, id);
    await this.#contents?.remove(volume);
  }

  /**
   * The usage of each volume; null if measuring takes too long. The measurement continues, so a later request
   * may have it. Only for a single volume something is started to measure it.
   */
  usages(volumes: readonly NetworkVolume[]): Promise<(VolumeUsage | null)[]> {
    const timeout = new Promise<null>((resolve) => setTimeout(() => resolve(null), USAGE_TIMEOUT_MS).unref());
    return Promise.all(
      volumes.map((volume) =>
        Promise.race([this.#contents?.usage(volume, volumes.length === 1) ?? null, timeout]),
      ),
    );
  }

  #announce({ accountId }: Caller, volumeId: string): void {
    this.#context.events.publish('volume.changed', { accountId, volumeId, source: 'request' });
  }

  #tier(dataCenterId: string, wanted: VolumeType | undefined): VolumeType {
    const dataCenters = this.#catalog.dataCenters();
    const dataCenter = dataCenters.find(({ id }) => id === dataCenterId);
    if (dataCenter === undefined) {
      throw ruleError(
        `data center ${JSON.stringify(dataCenterId.slice(0, 64))} does not exist here; available: ` +
          `${dataCenters.map(({ id }) => id).join(', ')}`,
      );
    }
    const type = wanted ?? dataCenter.networkVolumeTypes[0];
    if (type === undefined || !dataCenter.networkVolumeTypes.includes(type)) {
      throw ruleError(
        `data center ${dataCenterId} has no ${type ?? ''} network volumes; available: ` +
          `${dataCenter.networkVolumeTypes.join(', ') || 'none'}`,
      );
    }
    return type;
  }
}

/** A volume can only grow, so no data is lost. */
export function resizedTo(current: number, wanted: number | undefined, rule: ResizeRule): number {
  if (wanted === undefined) return current;
  if (wanted < current)
    throw ruleError(`a network volume cannot shrink: it has ${current} GB, the request is for ${wanted} GB`);
  if (wanted === current && rule === 'larger')
    throw ruleError(`the new size must be greater than the current size of ${current} GB`);
  return wanted;
}
