import { isUtf8 } from 'node:buffer';
import { readdir } from 'node:fs/promises';

export interface Names {
  /** In order. */
  names: string[];
  /** Those whose bytes are no UTF-8, as they look: nothing is found under them. */
  notText: string[];
}

/** The names in a folder. */
export async function readNames(folder: string): Promise<Names> {
  const found = await readdir(folder, 'buffer');
  return {
    names: found
      .filter((name) => isUtf8(name))
      .map(String)
      .sort(),
    notText: found
      .filter((name) => !isUtf8(name))
      .map(String)
      .sort(),
  };
}
