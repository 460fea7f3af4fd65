import { accountLimitSettings } from './account-limit.settings.ts';
import { backupSettings } from './backup.settings.ts';
import { computeSettings } from './compute.settings.ts';
import { environmentVariableOf, type Setting } from './setting.ts';
import { interfaceSettings } from './interface.settings.ts';
import { logSettings } from './log.settings.ts';
import { requestSettings } from './request.settings.ts';
import { serverSettings } from './server.settings.ts';
import { tlsSettings } from './tls.settings.ts';
import { telemetrySettings } from './telemetry.settings.ts';

/**
 * Every setting, in the order of the documentation. A new setting needs only an entry in one of these groups:
 * its type in `Config`, its environment variable, its checks, its line in `berth config` and in
 * docs/configuration.md follow from it.
 */
export const settings = {
  ...serverSettings,
  ...tlsSettings,
  ...logSettings,
  ...requestSettings,
  ...accountLimitSettings,
  ...interfaceSettings,
  ...backupSettings,
  ...telemetrySettings,
  ...computeSettings,
};

export type SettingPath = keyof typeof settings;

/** The settings as a list. */
export const settingList: readonly { path: SettingPath; setting: Setting; variable: string | undefined }[] =
  Object.entries(settings).map(([path, entry]) => ({
    path: path as SettingPath,
    setting: entry,
    variable: environmentVariableOf(path, entry),
  }));
