import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { InstanceFolder, type SavedInstance, type Started } from './instance-folder.ts';
import { endMembers, isAlive } from './membership.ts';
import { bootId } from './process-table.ts';

export interface Recovered {
  saved: SavedInstance;
  folder: InstanceFolder;
  started: Started;
  isRunning: boolean;
}

/**
 * What an earlier Berth left in its folder. What runs is known by number and start time of its
 * supervisor, within one start of the machine: a number alone may be somebody else's by now.
 * An instance whose start was cut off before it ran is cleared away; nobody was told of it.
 */
export async function recoverInstances(path: string): Promise<Recovered[]> {
  const recovered: Recovered[] = [];
  const boot = bootId();
  for (const name of await readdir(path)) {
    const folder = new InstanceFolder(join(path, name));
    const saved = folder.saved();
    const started = folder.started();
    if (saved !== undefined && started !== undefined) {
      recovered.push({ saved, folder, started, isRunning: saved.bootId === boot && isAlive(started.supervisor) });
    } else {
      await endMembers({ root: folder.root, cgroup: saved?.cgroup ?? null, started: undefined });
      await folder.remove();
    }
  }
  return recovered;
}
