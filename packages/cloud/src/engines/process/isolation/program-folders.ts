import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/**
 * The folders that a program needs, wherever it is installed: of a Python the whole installation, of another
 * program the folder that it is in.
 */
export function programFolders(program: string): string[] {
  if (!existsSync(program)) return [];
  const path = realpathSync(program);
  const folder = dirname(path);
  const installation = dirname(folder);
  return basename(path).startsWith('python') && hasLibrary(installation) ? [installation] : [folder];
}

function hasLibrary(installation: string): boolean {
  const library = join(installation, 'lib');
  return existsSync(library) && readdirSync(library).some((name) => /^python3\./.test(name));
}
