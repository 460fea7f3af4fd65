import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A folder of this name with these files, in its own parent folder. */
export interface TemporaryFolder {
  path: string;
  write(files: Record<string, string>): void;
  remove(): void;
}

export function createTemporaryFolder(name: string, files: Record<string, string>): TemporaryFolder {
  const place = mkdtempSync(join(tmpdir(), 'berth-folder-'));
  const path = join(place, name);
  const write = (given: Record<string, string>): void => {
    for (const [file, content] of Object.entries(given)) {
      mkdirSync(dirname(join(path, file)), { recursive: true });
      writeFileSync(join(path, file), content);
    }
  };
  write(files);
  return { path, write, remove: () => rmSync(place, { recursive: true, force: true }) };
}
