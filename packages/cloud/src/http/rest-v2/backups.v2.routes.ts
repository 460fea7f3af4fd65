import type { AllServices } from '../../resources/resources.ts';
import { isoTime } from '../../support/clock.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { named, nullable, object, stringEnum, text } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';

const flag = (description: string) => stringEnum(['true', 'false'], { description });

const backupStatus = named(
  'BackupStatus',
  object({
    target: text({ description: 'Where scheduled backups go; empty where none are made' }),
    lastAt: nullable(dateTime('When the last scheduled backup ended')),
    error: nullable(text({ description: 'Why it failed; null where it went well' })),
  }),
);

/** Backups of the whole installation, for its operator. */
export function backupOperations({ backups, backupSchedule }: AllServices): Operation[] {
  const tag = 'Accounts';
  return [
    operation({
      id: 'createBackup',
      method: 'GET',
      path: '/backup',
      tag,
      summary: 'Download a backup of the whole installation',
      access: 'write',
      download: 'application/x-tar',
      description:
        'A tar archive whose last entry is its manifest, with a checksum of every other one. It holds ' +
        'the keys of the installation unless "keys" is false. An archive that breaks off before its ' +
        'end is not whole. "berth backup" and "berth restore" speak this. It needs a key of the root ' +
        'account.',
      query: object(
        {},
        {
          keys: flag('Whether the master key and the root key are in it; default true'),
          volumes: flag('Whether network volumes and the disks of pods are in it; default false'),
        },
      ),
      status: 200,
      errorStatuses: [403, 422],
      handle: async ({ caller, query }) =>
        (await backups.create(caller, {
          keys: query.keys !== 'false',
          volumes: query.volumes === 'true',
        })) as never,
    }),
    operation({
      id: 'getBackupStatus',
      method: 'GET',
      path: '/backup/status',
      tag,
      summary: 'How the last scheduled backup went',
      access: 'read',
      status: 200,
      response: backupStatus,
      errorStatuses: [403],
      handle: async ({ caller }) => {
        const { target, last } = await backupSchedule.status(caller);
        return {
          target,
          lastAt: last === undefined ? null : isoTime(last.at),
          error: last?.error ?? null,
        };
      },
    }),
  ];
}
