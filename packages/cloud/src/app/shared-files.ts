import { join, resolve } from 'node:path';
import {
  type ArtifactFiles,
  LocalArtifactFiles,
  SharedArtifactFiles,
} from '../resources/flash/artifact-files.ts';
import { type Bucket, s3Bucket } from '../resources/object-storage/bucket.ts';
import { SharedFiles } from '../resources/shared-files/shared-files.ts';
import type { AppContext } from './app-context.ts';
import { s3Prefix } from './s3-location.ts';
import type { Storage } from './storage.ts';

const SWEEP_INTERVAL_MS = 3_600_000;

/** Files of the installation that every server reaches. */
export interface InstallationFiles {
  artifacts: ArtifactFiles;
  /** Undefined where the database has the files. */
  bucket: Bucket | undefined;
  start(): void;
  close(): Promise<void>;
}

/** With one server, files are on its disk; with PostgreSQL, they are there or in a bucket. */
export function createInstallationFiles(
  { config, log, clock, ids }: AppContext,
  { store }: Pick<Storage, 'store'>,
): InstallationFiles {
  const folder = join(resolve(config.data), 'artifacts');
  const found = s3Prefix('images.bucket', { ...config.images, value: config.images.bucket }, clock);
  const bucket = found && s3Bucket(found.location, found.prefix);
  if (config.database === '')
    return {
      artifacts: new LocalArtifactFiles(folder),
      bucket,
      start: () => undefined,
      close: async () => undefined,
    };
  const warn = (what: string, error: unknown): void => log.warn({ err: error }, what);
  const shared = new SharedFiles({
    store: store.sharedFiles,
    bucket,
    folder: join(resolve(config.data), 'shared-files'),
    clock,
    ids,
    onProblem: warn,
  });
  const artifacts = new SharedArtifactFiles(folder, shared);
  let work = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const run = (what: string, next: () => Promise<void>): void => {
    work = work.then(next).catch((error: unknown) => warn(what, error));
  };
  return {
    artifacts,
    bucket,
    start: () => {
      run('flash builds on this disk could not be shared with other servers', () => artifacts.shareLocal());
      const sweep = (): void =>
        run('copies of files that are gone could not be deleted', () => shared.sweep());
      sweep();
      timer = setInterval(sweep, SWEEP_INTERVAL_MS).unref();
    },
    close: async () => {
      clearInterval(timer);
      await work;
    },
  };
}
