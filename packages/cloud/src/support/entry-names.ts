import { isUtf8 } from 'node:buffer';
import { readdir } from 'node:fs/promises';

export interface EntryNames {
  /** In order. */
  names: string[];
  /** Names that are not valid UTF-8, as displayed: no file can be opened by them. */
  invalidUtf8: string[];
}

/** The names in a folder. */
export async function readEntryNames(folder: string): Promise<EntryNames> {
  const found = await readdir(folder, 'buffer');
  return {
    names: found
      .filter((name) => isUtf8(name))
      .map(String)
      .sort(),
    invalidUtf8: found
      .filter((name) => !isUtf8(name))
      .map(String)
      .sort(),
  };
}
