import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { BerthError } from './errors.ts';
import { createPrivateDirectory } from './private-directory.ts';

const STICKY = 0o1000;
export const CHOOSE_DATA_DIRECTORY = 'choose another with --data or BERTH_DATA';

/**
 * Creates the data folder if it is missing. A folder that cannot be used is reported before anything is
 * opened in it.
 */
export function openDataDirectory(path: string): void {
  try {
    createPrivateDirectory(path);
    accessSync(path, constants.W_OK | constants.X_OK);
    closeToOtherUsers(path);
  } catch (cause) {
    throw new BerthError(
      'unavailable',
      `the data folder ${resolve(path)} ${reasonOf((cause as NodeJS.ErrnoException).code)}`,
      { cause },
    );
  }
}

/** Exists if users of accounts must be able to pass through the folders: there are no namespaces. */
const PASSABLE_MARKER = join('users', 'passable');

/**
 * Lets users of accounts pass through the folders on the way to their own, without listing them; or closes
 * these again.
 */
export function setPassable(path: string, passable: boolean): void {
  const marker = join(path, PASSABLE_MARKER);
  mkdirSync(join(path, 'users'), { recursive: true, mode: 0o700 });
  if (passable) writeFileSync(marker, '', { mode: 0o600 });
  else rmSync(marker, { force: true });
  closeToOtherUsers(path);
}

/**
 * No other user of the machine may enter the folder or read the files in it, also if an earlier version
 * created them. A folder that is shared on purpose, such as /tmp, is left as it is.
 */
function closeToOtherUsers(path: string): void {
  const own = process.getuid?.();
  const found = statSync(path);
  if (own === undefined || found.uid !== own || (found.mode & STICKY) !== 0) return;
  const folderMode = existsSync(join(path, PASSABLE_MARKER)) ? 0o711 : 0o700;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (!entry.isFile() && !entry.isDirectory()) continue;
    const closed = entry.name === 'users' ? 0o700 : folderMode;
    // Node reads it for the handlers of accounts.
    const fileMode = entry.name === 'package.json' && folderMode === 0o711 ? 0o644 : 0o600;
    setMode(join(path, entry.name), own, entry.isFile() ? fileMode : closed);
  }
  setMode(path, own, folderMode);
}

function setMode(path: string, own: number, mode: number): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isSymbolicLink() && found.uid === own && (found.mode & 0o777) !== mode)
    chmodSync(path, mode);
}

function reasonOf(code: string | undefined): string {
  if (code === 'EEXIST') return `is not a folder; ${CHOOSE_DATA_DIRECTORY}`;
  if (code === 'ENOTDIR') return `lies below something that is not a folder; ${CHOOSE_DATA_DIRECTORY}`;
  return `cannot be written (${code}); let this user write there, or ${CHOOSE_DATA_DIRECTORY}`;
}
