import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import { formatBytes } from '../../support/byte-size.ts';
import { BerthError } from '../../support/errors.ts';
import {
  DiskGuard,
  type WritableDisk,
  type DiskSize,
  type EndableInstance,
  reserveOf,
  volumeDisk,
  type VolumeSizeReader,
} from '../disk-guard.ts';
import { deletedFileBytes, fileBytes, folderBytes, readDisk } from '../disk-use.ts';
import type { InstanceSpec } from '../instance.ts';
import { type ContainerDisk, readLabels } from './container-labels.ts';
import type { DockerClient } from './client/docker-client.ts';
import type { ContainerProcesses, DaemonInfo, InspectedContainer } from './client/docker-objects.ts';
import type { Daemon } from './daemon.ts';

/** How many times the reserve must be free for another container to start. */
const START_RESERVES = 1.5;

export interface DockerDiskDeps {
  readDaemonDisk(): Promise<DiskSize | undefined>;
  /** A folder on the disk of volumes, which may be another one. */
  data: string;
  instances(): readonly EndableInstance[];
  reserveBytes: number;
  onEnded(id: string, reason: string): void;
  onProblem(what: string, error: unknown): void;
}

/**
 * Keeps containers from filling the daemon's disk, and that of volumes. Of a daemon elsewhere, only the limits are
 * kept.
 */
export function dockerDiskGuard({
  readDaemonDisk,
  data,
  instances,
  reserveBytes,
  ...reports
}: DockerDiskDeps): DiskGuard {
  return new DiskGuard({
    instances: () => instances().filter(({ isRunning, isStopping }) => isRunning && !isStopping),
    readDisks: async () => {
      const own = await readDaemonDisk();
      const disks = own === undefined ? [] : [own, await readDisk(data)];
      return disks.filter(({ disk }, index) => index === 0 || disk !== own?.disk);
    },
    reserveBytes,
    now: () => performance.now(),
    ...reports,
  });
}

/** Reads the disk of the daemon; undefined if it is not on this machine, or not known now. */
export function daemonDiskReader(
  daemon: Daemon,
  isThisMachine: () => Promise<boolean>,
): () => Promise<DiskSize | undefined> {
  let folder: Promise<string | undefined> | undefined;
  return async () => {
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
  };
}

/**
 * Throws where so little is left that a container could not be started, or an image not be kept: more than what is kept
 * from the containers that run, so that none of them is ended for the sake of another one.
 */
export async function checkDaemonSpace(
  readDaemonDisk: () => Promise<DiskSize | undefined>,
  reserveBytes: number,
): Promise<void> {
  const disk = await readDaemonDisk();
  if (disk === undefined || disk.freeBytes >= START_RESERVES * reserveOf(disk, reserveBytes)) return;
  throw new BerthError(
    'capacity',
    `there is not enough space on the disk of Docker for images and containers: ${formatBytes(disk.freeBytes)} are free`,
  );
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
 * What a container has written: to its own layer, to the volumes that its image declares, to files that the daemon
 * keeps for it, to files that it has deleted and still holds, and to volumes.
 */
export async function containerDisks(
  client: DockerClient,
  containerId: string,
  volumeSize: VolumeSizeReader | undefined,
): Promise<WritableDisk[]> {
  const [info, pids] = await Promise.all([
    client.get<InspectedContainer>(`/containers/${containerId}/json`, { size: true }),
    processesOf(client, containerId),
  ]);
  const { disk, labels } = readLabels(info.Config.Labels);
  const { sizeInGb, volumes = {} } = disk ?? {};
  const mounts = info.Mounts;
  const anonymous = mounts.filter(({ Type: type }) => type === 'volume');
  const limited = mounts.filter(({ Destination: path }) => volumes[path] !== undefined);
  const folders = [...anonymous, ...limited].map(({ Source: source }) => source);
  const bytes = folders.length === 0 ? new Map<string, number>() : await folderBytes(folders);
  const sizeOf = ({ Source: source }: { Source: string }): number => bytes.get(source) ?? 0;
  const own = anonymous.reduce((sum, mount) => sum + sizeOf(mount), info.SizeRw ?? 0);
  // Files of the daemon's that root in a container can write to.
  const given = [info.HostsPath, info.HostnamePath, info.ResolvConfPath].filter((path) => path !== undefined);
  const log = info.LogPath === undefined || info.LogPath === '' ? [] : [info.LogPath, `${info.LogPath}.1`];
  const accountId = labels['account'] ?? ROOT_ACCOUNT_ID;
  const volumeDisks = limited.map(async (mount) => {
    const { Destination: path, Source: source } = mount;
    const volume = volumes[path];
    if (volume === undefined) return [];
    const fileSystem = await readDisk(source).catch(() => undefined);
    return [
      volumeDisk({ path, bytes: sizeOf(mount), disk: fileSystem?.disk, volume, accountId, volumeSize }),
    ];
  });
  return [
    {
      name: 'its container disk',
      bytes: own + (await fileBytes(given)) + (await deletedFileBytes(pids)),
      limitInGb: sizeInGb,
    },
    { name: 'its output', bytes: await fileBytes(log), limitInGb: undefined },
    ...(await Promise.all(volumeDisks)).flat(),
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
