import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { InstanceFolder, type SavedInstance, type StartedProcesses } from './instance-folder.ts';
import { killInstanceProcesses, isAlive } from './instance-processes.ts';
import { bootId } from './process-table.ts';
import { isRemovedFolder, type RemovedFolders } from './removed-folders.ts';

export interface RecoveredInstance {
  saved: SavedInstance;
  folder: InstanceFolder;
  started: StartedProcesses;
  isRunning: boolean;
}

/**
 * The instances that an earlier Berth process left. A running supervisor is identified by process id, start
 * time and boot id: a process id alone may have been reused. An instance whose start was interrupted is
 * deleted; its start was never acknowledged.
 */
export async function recoverInstances(path: string, removed: RemovedFolders): Promise<RecoveredInstance[]> {
  const recovered: RecoveredInstance[] = [];
  for (const folder of await foldersIn(path)) {
    const found = readInstance(folder);
    if (found !== undefined) recovered.push(found);
    else {
      const saved = folder.readSaved();
      await killInstanceProcesses({
        root: folder.root,
        cgroup: saved?.cgroup ?? null,
        started: undefined,
        uid: saved?.user?.uid,
      });
      await removed.remove(folder);
    }
  }
  return recovered;
}

/** Reads the instances without cleaning up: a folder that is not complete may be a start in progress. */
export async function findInstances(path: string): Promise<RecoveredInstance[]> {
  return (await foldersIn(path)).flatMap((folder) => readInstance(folder) ?? []);
}

async function foldersIn(path: string): Promise<InstanceFolder[]> {
  return (await readdir(path))
    .filter((name) => !isRemovedFolder(name))
    .map((name) => new InstanceFolder(join(path, name)));
}

function readInstance(folder: InstanceFolder): RecoveredInstance | undefined {
  const saved = folder.readSaved();
  const started = folder.readStarted();
  return saved === undefined || started === undefined
    ? undefined
    : { saved, folder, started, isRunning: saved.bootId === bootId() && isAlive(started.supervisor) };
}
