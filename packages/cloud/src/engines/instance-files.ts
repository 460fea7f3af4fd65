import type { Readable } from 'node:stream';

/**
 * Copies into instances that run, and out of them. A path is as the instance sees it; one that does
 * not begin with a slash begins at its working folder. Every operation rejects with `state` when the
 * instance does not run.
 */
export interface InstanceFiles {
  /** What is at a path, links followed; undefined where there is nothing. */
  stat(id: string, path: string): Promise<InstanceFile | undefined>;

  /** A tar of what is there. All its entries are below one, which is named as the last part of the path. Rejects with `not-found` where there is nothing. */
  read(id: string, path: string): Promise<Readable>;

  /** Unpacks a tar into a folder. What is in the way is replaced, folders are added to, and those on the way to an entry are made. Rejects with `rule` where the archive cannot be read. */
  write(id: string, folder: string, tar: Readable): Promise<void>;
}

export interface InstanceFile {
  kind: 'file' | 'folder' | 'other';
  size: number;
  mode: number;
  modifiedAt: number;
}
