import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import {
  DiskGuard,
  type WritableDisk,
  type EndableInstance,
  volumeDisk,
  type VolumeSizeReader,
} from '../disk-guard.ts';
import { deletedFileBytes, folderBytes, readDisk } from '../disk-use.ts';
import type { InstanceSpec } from '../instance.ts';
import { type ContainerDisk, readLabels } from './container-labels.ts';
import type { DockerClient } from './client/docker-client.ts';
import type { ContainerProcesses, DaemonInfo, InspectedContainer } from './client/docker-objects.ts';
import type { Daemon } from './daemon.ts';

export interface DockerDiskDeps {
  daemon: Daemon;
  instances(): readonly EndableInstance[];
  isThisMachine(): Promise<boolean>;
  reserveBytes: number;
  onEnded(id: string, reason: string): void;
  onProblem(what: string, error: unknown): void;
}

/** Keeps containers from filling the daemon's disk. Of a daemon elsewhere, only the limits are kept. */
export function dockerDiskGuard({
  daemon,
  instances,
  isThisMachine,
  reserveBytes,
  ...reports
}: DockerDiskDeps): DiskGuard {
  let folder: Promise<string | undefined> | undefined;
  return new DiskGuard({
    instances: () => instances().filter(({ isRunning, isStopping }) => isRunning && !isStopping),
    readDisk: async () => {
      folder ??= (async () =>
        (await isThisMachine())
          ? (await daemon.call((client) => client.get<DaemonInfo>('/info'))).DockerRootDir
          : undefined)();
      try {
        const found = await folder;
        return found === undefined ? undefined : await readDisk(found);
      } catch {
        // The daemon does not answer now, or its folder is in a virtual machine.
        folder = undefined;
        return undefined;
      }
    },
    reserveBytes,
    now: () => performance.now(),
    ...reports,
  });
}

/** What an instance may write, as its container keeps it. */
export function diskOf({ containerDiskInGb, mounts }: InstanceSpec): ContainerDisk {
  return {
    ...(containerDiskInGb > 0 && { sizeInGb: containerDiskInGb }),
    volumes: Object.fromEntries(
      mounts.flatMap(({ path, readOnly, volume }) =>
        readOnly === true || volume === undefined ? [] : [[path, volume]],
      ),
    ),
  };
}

/**
 * What a container has written: to its own layer, to the volumes that its image declares, to files that it
 * has deleted and still holds, and to volumes.
 */
export async function containerDisks(
  client: DockerClient,
  containerId: string,
  volumeSize: VolumeSizeReader | undefined,
): Promise<WritableDisk[]> {
  const info = await client.get<InspectedContainer>(`/containers/${containerId}/json`, { size: true });
  const { disk, labels } = readLabels(info.Config.Labels);
  const { sizeInGb, volumes = {} } = disk ?? {};
  const mounts = info.Mounts;
  const anonymous = mounts.filter(({ Type: type }) => type === 'volume');
  const limited = mounts.filter(({ Destination: path }) => volumes[path] !== undefined);
  const folders = [...anonymous, ...limited].map(({ Source: source }) => source);
  const bytes = folders.length === 0 ? new Map<string, number>() : await folderBytes(folders);
  const sizeOf = ({ Source: source }: { Source: string }): number => bytes.get(source) ?? 0;
  const own = anonymous.reduce((sum, mount) => sum + sizeOf(mount), info.SizeRw ?? 0);
  return [
    {
      name: 'its container disk',
      bytes: own + (await deletedFileBytes(await processesOf(client, containerId))),
      limitInGb: sizeInGb,
    },
    ...limited.flatMap((mount) => {
      const { Destination: path } = mount;
      const volume = volumes[path];
      const accountId = labels['account'] ?? ROOT_ACCOUNT_ID;
      return volume === undefined
        ? []
        : [volumeDisk({ path, bytes: sizeOf(mount), volume, accountId, volumeSize })];
    }),
  ];
}

/** By the ids of the daemon's machine. */
async function processesOf(client: DockerClient, containerId: string): Promise<number[]> {
  try {
    const { Processes: rows } = await client.get<ContainerProcesses>(`/containers/${containerId}/top`, {
      ps_args: '-eo pid',
    });
    return rows.map(([pid]) => Number(pid)).filter((pid) => pid > 0);
  } catch {
    return [];
  }
}
