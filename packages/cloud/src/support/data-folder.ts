import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import { BerthError } from './errors.ts';
import { makePrivateFolder } from './private-folder.ts';

export const CHOOSE_DATA_FOLDER = 'choose another with --data or BERTH_DATA';

/** The folder for what Berth keeps, made where it is missing. One that cannot be used is told before anything is opened in it. */
export function openDataFolder(path: string): void {
  try {
    makePrivateFolder(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new BerthError(
      'unavailable',
      `the data folder ${resolve(path)} ${whyNot((cause as NodeJS.ErrnoException).code)}`,
      { cause },
    );
  }
}

function whyNot(code: string | undefined): string {
  if (code === 'EEXIST') return `is not a folder; ${CHOOSE_DATA_FOLDER}`;
  if (code === 'ENOTDIR') return `lies below something that is not a folder; ${CHOOSE_DATA_FOLDER}`;
  return `cannot be written (${code}); let this user write there, or ${CHOOSE_DATA_FOLDER}`;
}
