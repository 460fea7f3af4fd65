import { booleanType, optionalTextType, textType, urlType, wholeNumberType } from './setting-type.ts';
import { defineSetting } from './setting.ts';

/** Scheduled backups. */
export const backupSettings = {
  'backup.every': defineSetting({
    type: wholeNumberType(0, 8760),
    default: 24,
    description:
      'Hours between two scheduled backups. Backups are made if backup.target is set; 0 turns them ' +
      'off. See docs/backup.md.',
  }),
  'backup.target': defineSetting({
    type: optionalTextType('the path of a folder, or an S3 bucket such as s3://bucket/prefix', (value) =>
      value.includes('\0') || (value.includes('://') && !/^s3:\/\/[^/]+/.test(value)) ? undefined : value,
    ),
    default: '',
    description:
      'Where scheduled backups are stored: a folder (on another disk, to survive the loss of this ' +
      'one), or s3://bucket/prefix with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the ' +
      'environment. Backups contain the keys of this installation. Empty: no scheduled backups.',
  }),
  'backup.keep': defineSetting({
    type: wholeNumberType(1, 10_000),
    default: 7,
    description: 'How many scheduled backups are kept. The oldest ones are deleted after a new one was made.',
  }),
  'backup.volumes': defineSetting({
    type: booleanType(['true', 'false']),
    default: false,
    description: 'Whether scheduled backups contain network volumes and the disks of pods.',
  }),
  'backup.s3Endpoint': defineSetting({
    type: urlType(),
    default: '',
    description: 'The address of the S3 service of backup.target, if it is not AWS.',
  }),
  'backup.s3Region': defineSetting({
    type: textType('the name of a region', (value) => /^[A-Za-z0-9-]+$/.test(value)),
    default: 'us-east-1',
    description: 'The region of the S3 bucket of backup.target.',
  }),
};
