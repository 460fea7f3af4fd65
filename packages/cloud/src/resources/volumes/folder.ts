import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Endpoint } from '../../store/records.ts';
import type { Store } from '../../store/store.ts';

/** Where the network volume of an endpoint or a pod in a data center lies on disk; undefined where it has none there. */
export async function volumeFolder(store: Store, data: string, { accountId, networkVolumeIds }: Pick<Endpoint, 'accountId' | 'networkVolumeIds'>, dataCenterId: string): Promise<{ id: string; folder: string } | undefined> {
  for (const id of networkVolumeIds) {
    const volume = await store.volumes.find(accountId, id);
    if (volume?.dataCenterId !== dataCenterId) continue;
    const folder = join(resolve(data), 'volumes', id);
    await mkdir(folder, { recursive: true });
    return { id, folder };
  }
  return undefined;
}
