import type { Readable } from 'node:stream';

/**
 * Copies files into and out of running instances. Paths are as the instance sees them; relative paths start
 * at its working folder. Every operation rejects with `state` when the instance does not run.
 */
export interface InstanceFiles {
  /** The file at a path, with links followed; undefined if there is none. */
  stat(id: string, path: string): Promise<InstanceFile | undefined>;

  /**
   * A tar archive of the path. Its single top-level entry is named like the last part of the path. Rejects
   * with `not-found` if there is nothing.
   */
  read(id: string, path: string): Promise<Readable>;

  /**
   * Unpacks a tar archive into a folder. Existing files are replaced, folders are merged, and missing parent
   * folders are created. Rejects with `rule` if the archive cannot be read.
   */
  write(id: string, folder: string, tar: Readable): Promise<void>;
}

export interface InstanceFile {
  kind: 'file' | 'folder' | 'other';
  size: number;
  mode: number;
  modifiedAt: number;
}
