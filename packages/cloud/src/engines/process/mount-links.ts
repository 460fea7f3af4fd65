import { mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { BerthError } from '../../support/errors.ts';
import type { InstanceMount } from '../instance.ts';

export interface CreatedMounts {
  /** Links outside the instance's folder, to be taken away with the last instance that uses them. */
  links: string[];
  /** Paths that are only below the instance's root. */
  belowRootOnly: string[];
}

/**
 * Makes each mount a link below the instance's root, and at the very path where that can be:
 * where nothing is yet and this user may write, or where another instance (`known`) has the same
 * link. Two instances with different volumes at one path cannot both have it.
 */
export function createMounts(
  mounts: readonly InstanceMount[],
  root: string,
  known: (link: string) => boolean,
): CreatedMounts {
  const made: CreatedMounts = { links: [], belowRootOnly: [] };
  for (const { source, path } of mounts) {
    const place = resolve('/', path);
    // At its own path it is there already: instances here see the machine's files.
    if (place === resolve(source)) continue;
    try {
      linkBelow(source, join(root, place));
    } catch (error) {
      removeMountLinks(made.links.filter((link) => !known(link)));
      throw new BerthError('rule', `${source} cannot be mounted at ${path}: ${(error as Error).message}`, {
        cause: error,
      });
    }
    if (link(source, place, known)) made.links.push(place);
    else made.belowRootOnly.push(place);
  }
  return made;
}

function linkBelow(source: string, place: string): void {
  mkdirSync(source, { recursive: true });
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(source, place);
}

function link(source: string, place: string, known: (link: string) => boolean): boolean {
  try {
    symlinkSync(source, place);
    return true;
  } catch (error) {
    // Whatever the reason, the mount is below the root as well.
    return (error as NodeJS.ErrnoException).code === 'EEXIST' && known(place) && isLinkTo(place, source);
  }
}

/** Takes links away that lead to nothing any more. Never anything else that stands there by now. */
export function removeMountLinks(links: readonly string[]): void {
  for (const place of links) if (isLinkTo(place, undefined)) rmSync(place);
}

/** Whether a link is there, and leads to this place if one is named. */
function isLinkTo(place: string, source: string | undefined): boolean {
  try {
    const target = readlinkSync(place);
    return source === undefined || target === source;
  } catch {
    return false;
  }
}
