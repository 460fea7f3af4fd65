import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ruleError } from '../../../support/errors.ts';
import type { FileOwner } from '../../../support/file-owner.ts';
import type { InstanceMount } from '../../instance.ts';
import type { InstanceFolder } from '../instance-folder.ts';
import { linkBelowRoot } from '../mount-links.ts';
import { SandboxView } from './sandbox-view.ts';

export interface InstanceViewOptions {
  folder: InstanceFolder;
  user: FileOwner;
  mounts: readonly InstanceMount[];
  /** Folders that the instance sees read-only at their own paths. */
  readable: readonly string[];
  /** Folders that it sees at their own paths and may change. */
  writable: readonly string[];
  /** Berth's data folder, of which nothing else is visible. */
  data: string;
  /** The instance has real GPUs. */
  gpus: boolean;
  /** Its memory, which is also the size of /dev/shm. */
  memoryInBytes?: number;
  /** Its own cgroup, where it finds its limits. Those of others are not visible. */
  cgroup?: string | undefined;
}

const CGROUPS = '/sys/fs/cgroup';

/**
 * Prepares the files that an instance of an account sees: the programs of the machine and of Berth, its own
 * folder and its mounts. Returns the mount paths that are only below its root.
 */
export function buildInstanceView(options: InstanceViewOptions): { belowRootOnly: string[] } {
  const { folder, user, mounts, readable, writable, data, gpus, memoryInBytes, cgroup } = options;
  for (const path of [folder.view, folder.cover, folder.cgroupCover]) {
    mkdirSync(path, { mode: 0o755 });
    chmodSync(path, 0o755);
  }
  const view = new SandboxView(folder.view);
  view.addSystem({ tmp: folder.tmp, gpus, ...(memoryInBytes !== undefined && { shmBytes: memoryInBytes }) });
  view.addUserNames(writeUserNames(folder, user));
  view.hide(CGROUPS, folder.cgroupCover);
  if (cgroup?.startsWith(`${CGROUPS}/`) === true) view.bind(cgroup, cgroup, { readOnly: true });
  const insideData = (path: string): boolean => path.startsWith(`${data}/`);
  for (const path of readable.filter((entry) => !insideData(entry))) view.bindReadOnly(path);
  view.hide(data, folder.cover);
  for (const path of readable.filter(insideData)) view.bindReadOnly(path);
  for (const path of [folder.root, ...writable]) view.bind(path, path);
  const belowRootOnly = mounts.flatMap((mount) => (addMount(view, folder.root, mount) ? [] : [mount.path]));
  writeFileSync(folder.fstab, view.toFstab(), { mode: 0o600 });
  return { belowRootOnly };
}

/** Returns false if the mount path is not free: the mount is then only below the root. */
function addMount(
  view: SandboxView,
  root: string,
  { source, path, readOnly = false }: InstanceMount,
): boolean {
  const target = resolve('/', path);
  const free = target !== resolve(source) && view.isFree(target);
  if (!free && view.isChangeable(source))
    throw ruleError(
      `nothing can be mounted at ${path}: an earlier mount hides the volumes; choose another path`,
    );
  view.bind(source, free ? target : source, { readOnly });
  if (target === resolve(source)) return true;
  linkBelowRoot(free ? target : source, root, target);
  return free;
}

function writeUserNames(
  { userNames, root }: InstanceFolder,
  { uid, gid }: FileOwner,
): { passwd: string; group: string } {
  const files = { passwd: `${userNames}.passwd`, group: `${userNames}.group` };
  const write = (path: string, lines: readonly string[]): void => {
    writeFileSync(path, lines.map((line) => `${line}\n`).join(''), { mode: 0o644 });
    chmodSync(path, 0o644);
  };
  write(files.passwd, [
    'root:x:0:0:root:/root:/bin/sh',
    'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
    `berth:x:${uid}:${gid}:account:${root.replace(/[:\n]/g, '_')}:/bin/sh`,
  ]);
  write(files.group, ['root:x:0:', 'tty:x:5:', 'nogroup:x:65534:', `berth:x:${gid}:`]);
  return files;
}
