import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Endpoint } from '../../domain/records.ts';
import type { Store } from '../../store/store.ts';

/** Where the data of a network volume lies. */
export function volumeDirectoryPath(data: string, id: string): string {
  return join(resolve(data), 'volumes', id);
}

/** Beside the volumes, on their file system: what is known of a volume's files and what is on its way there. No id begins with a dot. */
export function volumeStatePath(data: string, id: string): string {
  return join(resolve(data), 'volumes', '.s3', id);
}

/** Where the network volume of an endpoint or a pod in a data center lies on disk; undefined where it has none there. */
export async function findVolumeDirectory(
  store: Store,
  data: string,
  { accountId, networkVolumeIds }: Pick<Endpoint, 'accountId' | 'networkVolumeIds'>,
  dataCenterId: string,
): Promise<{ id: string; folder: string } | undefined> {
  for (const id of networkVolumeIds) {
    const volume = await store.volumes.find(accountId, id);
    if (volume?.dataCenterId !== dataCenterId) continue;
    const folder = volumeDirectoryPath(data, id);
    await mkdir(folder, { recursive: true });
    return { id, folder };
  }
  return undefined;
}
