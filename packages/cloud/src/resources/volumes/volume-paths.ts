import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Endpoint } from '../../domain/records.ts';
import type { Store } from '../../store/store.ts';

/** The directory with the data of a network volume. */
export function volumeDirectoryPath(data: string, id: string): string {
  return join(resolve(data), 'volumes', id);
}

/**
 * The directory for metadata and unfinished uploads of a volume, on the same file system. Ids do not begin
 * with a dot.
 */
export function volumeStatePath(data: string, id: string): string {
  return join(resolve(data), 'volumes', '.s3', id);
}

export interface VolumeDirectory {
  id: string;
  folder: string;
  size: number;
  type: string;
}

/**
 * The directory of the network volume that an endpoint or a pod has in a data center; undefined if it has
 * none there.
 */
export async function findVolumeDirectory(
  store: Store,
  data: string,
  { accountId, networkVolumeIds }: Pick<Endpoint, 'accountId' | 'networkVolumeIds'>,
  dataCenterId: string,
): Promise<VolumeDirectory | undefined> {
  for (const id of networkVolumeIds) {
    const volume = await store.volumes.find(accountId, id);
    if (volume?.dataCenterId !== dataCenterId) continue;
    const folder = volumeDirectoryPath(data, id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return { id, folder, size: volume.size, type: volume.type };
  }
  return undefined;
}
