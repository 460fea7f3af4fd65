import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream';
import { pipeline as pipelineToEnd } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { EnvironmentArchives } from '../engines/process/python/environment-archives.ts';
import {
  type ArtifactFiles,
  LocalArtifactFiles,
  SharedArtifactFiles,
} from '../resources/flash/artifact-files.ts';
import { type Bucket, s3Bucket } from '../resources/object-storage/bucket.ts';
import { SharedFiles } from '../resources/shared-files/shared-files.ts';
import type { Ids } from '../support/ids.ts';
import type { AppContext } from './app-context.ts';
import { s3Prefix } from './s3-location.ts';
import type { Storage } from './storage.ts';

const SWEEP_INTERVAL_MS = 3_600_000;
const MS_PER_DAY = 24 * 3_600_000;
const ENVIRONMENTS = 'python/';

/** Files of the installation that every server reaches. */
export interface InstallationFiles {
  artifacts: ArtifactFiles;
  /** Undefined with one server. */
  environments: EnvironmentArchives | undefined;
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
      environments: undefined,
      bucket,
      start: () => undefined,
      close: async () => undefined,
    };
  const copies = join(resolve(config.data), 'shared-files');
  const warn = (what: string, error: unknown): void => log.warn({ err: error }, what);
  const shared = new SharedFiles({
    store: store.sharedFiles,
    bucket,
    folder: copies,
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
  const environments = sharedEnvironments(shared, copies, ids, warn);
  return {
    artifacts,
    environments,
    bucket,
    start: () => {
      run('flash builds on this disk could not be shared with other servers', () => artifacts.shareLocal());
      const sweep = (): void =>
        run('shared files that are no longer needed could not be deleted', async () => {
          await shared.expire(ENVIRONMENTS, clock.now() - config.pythonEnvironments.keepDays * MS_PER_DAY);
          await shared.sweep();
        });
      sweep();
      timer = setInterval(sweep, SWEEP_INTERVAL_MS).unref();
    },
    close: async () => {
      clearInterval(timer);
      await work;
    },
  };
}

/** Packed with little effort: most of what is in them is compressed already, or read once. */
function sharedEnvironments(
  shared: SharedFiles,
  folder: string,
  ids: Ids,
  onProblem: EnvironmentArchives['onProblem'],
): EnvironmentArchives {
  const fileOf = (name: string): string => `${ENVIRONMENTS}${name}.tar.gz`;
  return {
    onProblem,
    open: async (name) => {
      const packed = await shared.open(fileOf(name));
      // The reader of the archive meets the error of either.
      return packed && pipeline(packed, createGunzip(), () => undefined);
    },
    add: async (name, content) => {
      // Left by a crash, it goes with a sweep.
      const draft = join(folder, `packed-${ids.resource()}`);
      await mkdir(folder, { recursive: true });
      try {
        await pipelineToEnd(content, createGzip({ level: 1 }), createWriteStream(draft, { mode: 0o600 }));
        await shared.add(fileOf(name), draft, { keepCopy: false });
      } finally {
        await rm(draft, { force: true });
      }
    },
  };
}
