import { fileURLToPath } from 'node:url';

/** A path inside the repository. */
export function repositoryPath(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}
