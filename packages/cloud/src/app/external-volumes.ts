import type { NetworkVolume } from '../domain/records.ts';
import type { EngineVolume, EngineVolumes } from '../engines/engine-volumes.ts';
import type { InstanceEngine } from '../engines/engine.ts';
import { remoteVolume } from '../resources/volumes/remote/remote-volume.ts';
import { VolumeServerClient } from '../resources/volumes/remote/volume-server-client.ts';
import type { VolumeBackend } from '../resources/volumes/volume-backend.ts';
import type { ExternalVolumes } from '../resources/volumes/volume-contents.ts';
import type { VolumeUsage } from '../resources/volumes/volume-usage.ts';

const BYTES_PER_GB = 1024 ** 3;

/** Network volumes of data centers whose engines keep volumes by themselves. */
export function createExternalVolumes(engines: ReadonlyMap<string, InstanceEngine>): ExternalVolumes {
  const lastUsage = new Map<string, VolumeUsage>();
  const volumesOf = ({ dataCenterId }: NetworkVolume): EngineVolumes | undefined =>
    engines.get(dataCenterId)?.volumes;
  const backend = (volume: NetworkVolume): VolumeBackend | undefined => {
    const volumes = volumesOf(volume);
    if (volumes === undefined) return undefined;
    return remoteVolume(
      new VolumeServerClient({
        connect: () => volumes.connect(toEngineVolume(volume)),
        onUnreachable: () => volumes.forgetServer(volume.id),
        capacity: volume.size * BYTES_PER_GB,
      }),
    );
  };
  return {
    backend,
    create: async (volume) => volumesOf(volume)?.create(toEngineVolume(volume)),
    grow: async (volume) => volumesOf(volume)?.grow(toEngineVolume(volume)),
    remove: async (volume) => {
      lastUsage.delete(volume.id);
      await volumesOf(volume)?.remove(volume.id);
    },
    usage: async (volume, mayStart) => {
      const isServed = mayStart || (await volumesOf(volume)?.findServer(volume.id)) !== undefined;
      if (!isServed) return lastUsage.get(volume.id) ?? null;
      const usage = await backend(volume)?.usage();
      if (usage !== undefined) lastUsage.set(volume.id, usage);
      return usage ?? null;
    },
  };
}

function toEngineVolume({ id, accountId, size, type }: NetworkVolume): EngineVolume {
  return { id, accountId, sizeInGb: size, type };
}
