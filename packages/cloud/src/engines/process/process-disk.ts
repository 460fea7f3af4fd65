import { ROOT_ACCOUNT_ID } from '../../domain/caller.ts';
import {
  DiskGuard,
  type WritableDisk,
  type EndableInstance,
  volumeDisk,
  type VolumeSizeReader,
} from '../disk-guard.ts';
import { deletedFileBytes, folderBytes, readDisk } from '../disk-use.ts';
import type { InstanceMount, InstanceVolume } from '../instance.ts';
import type { InstanceFolder, SavedInstance } from './instance-folder.ts';

export interface ProcessDiskDeps {
  /** A folder on the disk that instances write to. */
  path: string;
  instances(): readonly EndableInstance[];
  reserveBytes: number;
  onEnded(id: string, reason: string): void;
  onProblem(what: string, error: unknown): void;
}

/** Keeps the instances of the process engine from filling the disk. */
export function processDiskGuard({ path, instances, reserveBytes, ...reports }: ProcessDiskDeps): DiskGuard {
  return new DiskGuard({
    instances: () => instances().filter(({ isRunning, isStopping }) => isRunning && !isStopping),
    readDisks: async () => [await readDisk(path)],
    reserveBytes,
    now: () => performance.now(),
    ...reports,
  });
}

/** What an instance has written: to its own folder, to files that it has deleted and still holds, to volumes. */
export async function processDisks(
  { diskInGb, mounts = [], python, labels }: SavedInstance,
  { root, tmp }: InstanceFolder,
  pids: readonly number[],
  volumeSize?: VolumeSizeReader,
): Promise<WritableDisk[]> {
  const accountId = labels['account'] ?? ROOT_ACCOUNT_ID;
  const volumes = mounts.filter(isWritten);
  const others = python === undefined ? [] : [python];
  const bytes = await folderBytes([root, tmp, ...volumes.map(({ source }) => source), ...others]);
  const sizeOf = (folder: string): number => bytes.get(folder) ?? 0;
  return [
    {
      name: 'its container disk',
      bytes: sizeOf(root) + sizeOf(tmp) + (await deletedFileBytes(pids)),
      limitInGb: diskInGb,
    },
    ...volumes.map(({ source, path, volume }) =>
      volumeDisk({ path, bytes: sizeOf(source), volume, accountId, volumeSize }),
    ),
    ...others.map((folder) => ({
      name: 'its Python environment',
      bytes: sizeOf(folder),
      limitInGb: undefined,
      lasting: true as const,
    })),
  ];
}

function isWritten(mount: InstanceMount): mount is InstanceMount & { volume: InstanceVolume } {
  return mount.readOnly !== true && mount.volume !== undefined;
}
