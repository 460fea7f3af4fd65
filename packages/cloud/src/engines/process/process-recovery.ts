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
 * What an earlier Berth left in its folder. What runs is known by number and start time of its
 * supervisor, within one start of the machine: a number alone may be somebody else's by now.
 * An instance whose start was cut off before it ran is cleared away; nobody was told of it.
 */
export async function recoverInstances(path: string, removed: RemovedFolders): Promise<RecoveredInstance[]> {
  const recovered: RecoveredInstance[] = [];
  for (const folder of await foldersIn(path)) {
    const found = readInstance(folder);
    if (found !== undefined) recovered.push(found);
    else {
      await killInstanceProcesses({
        root: folder.root,
        cgroup: folder.readSaved()?.cgroup ?? null,
        started: undefined,
      });
      await removed.remove(folder);
    }
  }
  return recovered;
}

/** The same in passing: what is about to be started, by us or by another, is left alone. */
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
