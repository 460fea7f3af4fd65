import { readdir } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { closestMatch } from '../../support/config/did-you-mean.ts';
import { CliError } from '../cli.errors.ts';

/** Names the folder in the same place that is spelled alike, or else says what the word could be besides. */
export async function noSuchFolder(path: string, otherwise = ''): Promise<CliError> {
  const typed = path.replace(/\/+$/, '');
  const name = basename(typed);
  const close = closestMatch(name, await foldersIn(dirname(typed)));
  const hint = close === undefined ? otherwise : `; did you mean ${typed.slice(0, -name.length)}${close}?`;
  return new CliError(`there is no folder ${path}${hint}`);
}

async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
}
