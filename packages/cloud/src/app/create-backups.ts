import { resolve } from 'node:path';
import { BackupSchedule } from '../resources/backups/backup-schedule.ts';
import type { BackupTarget } from '../resources/backups/backup-target.ts';
import { Backups } from '../resources/backups/backups.ts';
import { folderTarget } from '../resources/backups/folder-target.ts';
import { s3Target } from '../resources/backups/s3-target.ts';
import { awsIdentityFromEnv } from '../resources/registries/ecr-login.ts';
import { wallNow } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { ConfigError } from '../support/config/config-error.ts';
import type { Config } from '../support/config/config.ts';
import type { AppContext } from './app-context.ts';
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
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(backup.target) ?? [];
  if (bucket === undefined) return folderTarget(resolve(backup.target));
  const identity = awsIdentityFromEnv(process.env);
  if (identity === undefined)
    throw new ConfigError([
      'backup.target is an S3 bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of Berth',
    ]);
  const endpoint = backup.s3Endpoint || `https://s3.${backup.s3Region}.amazonaws.com`;
  const location = { endpoint, region: backup.s3Region, bucket, identity, now: () => wallNow(clock) };
  return s3Target(location, prefix.replace(/\/+$/, ''));
}
