import { resolve } from 'node:path';
import { BackupSchedule } from '../resources/backups/backup-schedule.ts';
import type { BackupTarget } from '../resources/backups/backup-target.ts';
import { Backups } from '../resources/backups/backups.ts';
import { folderTarget } from '../resources/backups/folder-target.ts';
import { s3Target } from '../resources/backups/s3-target.ts';
import type { Clock } from '../support/clock.ts';
import type { Config } from '../support/config/config.ts';
import type { AppContext } from './app-context.ts';
import { s3Prefix } from './s3-location.ts';
import type { Storage } from './storage.ts';

export interface BackupServices {
  backups: Backups;
  backupSchedule: BackupSchedule;
}

export function createBackups(
  { config, log, clock }: AppContext,
  { store, context, masterKey }: Storage,
): BackupServices {
  const backups = new Backups({ context, data: resolve(config.data), masterKey });
  const { target, every, keep, volumes } = config.backup;
  const backupSchedule = new BackupSchedule({
    backups,
    store: store.backup,
    clock,
    log,
    data: resolve(config.data),
    targetName: target,
    target: createTarget(config, clock),
    everyHours: every,
    keep,
    volumes,
  });
  return { backups, backupSchedule };
}

function createTarget({ backup }: Config, clock: Clock): BackupTarget | undefined {
  if (backup.target === '') return undefined;
  const bucket = s3Prefix('backup.target', { ...backup, value: backup.target }, clock);
  return bucket === undefined
    ? folderTarget(resolve(backup.target))
    : s3Target(bucket.location, bucket.prefix);
}
