import { fileURLToPath } from 'node:url';

/** A path inside the repository. */
export function inRepository(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}
