import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import { BerthError } from './errors.ts';
import { createPrivateDirectory } from './private-directory.ts';

export const CHOOSE_DATA_DIRECTORY = 'choose another with --data or BERTH_DATA';

/**
 * Creates the data folder if it is missing. A folder that cannot be used is reported before anything is
 * opened in it.
 */
export function openDataDirectory(path: string): void {
  try {
    createPrivateDirectory(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new BerthError(
      'unavailable',
      `the data folder ${resolve(path)} ${reasonOf((cause as NodeJS.ErrnoException).code)}`,
      { cause },
    );
  }
}

function reasonOf(code: string | undefined): string {
  if (code === 'EEXIST') return `is not a folder; ${CHOOSE_DATA_DIRECTORY}`;
  if (code === 'ENOTDIR') return `lies below something that is not a folder; ${CHOOSE_DATA_DIRECTORY}`;
  return `cannot be written (${code}); let this user write there, or ${CHOOSE_DATA_DIRECTORY}`;
}
