import { lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BerthError, ruleError } from '../../support/errors.ts';
import type { InstanceMount } from '../instance.ts';

export interface CreatedMounts {
  /** Links outside the instance's folder, removed with the last instance that uses them. */
  links: string[];
  /** Mount paths that could only be linked below the instance's root. */
  belowRootOnly: string[];
}

/**
 * Links each mount below the instance's root, and also at the mount path itself where possible: where nothing
 * exists yet and this user may write, or where another instance already has the same link (`isMountLink`).
 * Two instances with different volumes at one path cannot both have it.
 */
export function createMounts(
  mounts: readonly InstanceMount[],
  root: string,
  isMountLink: (link: string) => boolean,
): CreatedMounts {
  const created: CreatedMounts = { links: [], belowRootOnly: [] };
  for (const { source, path } of mounts) {
    const linkPath = resolve('/', path);
    // The source is at this path already: instances see the host's files.
    if (linkPath === resolve(source)) continue;
    try {
      mkdirSync(source, { recursive: true });
      linkBelowRoot(source, root, linkPath);
    } catch (error) {
      removeMountLinks(created.links.filter((link) => !isMountLink(link)));
      throw new BerthError('rule', `${source} cannot be mounted at ${path}: ${(error as Error).message}`, {
        cause: error,
      });
    }
    if (link(source, linkPath, isMountLink)) created.links.push(linkPath);
    else created.belowRootOnly.push(linkPath);
  }
  return created;
}

/** Links each mount below the root only. Returns the mount paths. */
export function linkMountsBelow(mounts: readonly InstanceMount[], root: string): string[] {
  return mounts
    .filter(({ source, path }) => resolve('/', path) !== resolve(source))
    .map(({ source, path }) => {
      mkdirSync(source, { recursive: true });
      linkBelowRoot(source, root, resolve('/', path));
      return path;
    });
}

/** Links a mount path below the root. The account chooses it, so no link on the way is followed. */
export function linkBelowRoot(target: string, root: string, path: string): void {
  const names = path.split('/').filter((name) => name !== '');
  let folder = root;
  for (const name of names.slice(0, -1)) {
    folder = join(folder, name);
    const found = lstatSync(folder, { throwIfNoEntry: false });
    if (found === undefined) mkdirSync(folder);
    else if (!found.isDirectory())
      throw ruleError(`nothing can be mounted at ${path}: another mount is above it; choose another path`);
  }
  symlinkSync(target, join(root, ...names));
}

function link(source: string, linkPath: string, isMountLink: (link: string) => boolean): boolean {
  try {
    symlinkSync(source, linkPath);
    return true;
  } catch (error) {
    // Any failure is acceptable here: the mount is linked below the root as well.
    return (
      (error as NodeJS.ErrnoException).code === 'EEXIST' &&
      isMountLink(linkPath) &&
      isLinkTo(linkPath, source)
    );
  }
}

/** Removes symbolic links only, never a file or folder that has replaced one. */
export function removeMountLinks(links: readonly string[]): void {
  for (const linkPath of links) if (isLinkTo(linkPath, undefined)) rmSync(linkPath);
}

/** Whether the path is a symbolic link and, if `source` is given, points to it. */
function isLinkTo(linkPath: string, source: string | undefined): boolean {
  try {
    const target = readlinkSync(linkPath);
    return source === undefined || target === source;
  } catch {
    return false;
  }
}
