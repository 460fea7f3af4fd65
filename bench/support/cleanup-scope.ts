import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Folders outlive a crash unless the process itself removes them on its way out. */
const folders = new Set<string>();
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Cleanups of a measurement, run in reverse order. */
export class CleanupScope {
  readonly #endings: (() => Promise<void> | void)[] = [];

  defer(ending: () => Promise<void> | void): void {
    this.#endings.push(ending);
  }

  /** A folder that is deleted with the scope. */
  folder(name: string): string {
    const folder = mkdtempSync(join(tmpdir(), `berth-bench-${name}-`));
    folders.add(folder);
    this.defer(() => {
      rmSync(folder, { recursive: true, force: true });
      folders.delete(folder);
    });
    return folder;
  }

  async close(): Promise<void> {
    for (let ending = this.#endings.pop(); ending !== undefined; ending = this.#endings.pop()) await ending();
  }
}

/** Runs `work` with a new scope, and closes the scope afterwards, also on an error. */
export async function withCleanup<T>(work: (scope: CleanupScope) => Promise<T>): Promise<T> {
  const scope = new CleanupScope();
  try {
    return await work(scope);
  } finally {
    await scope.close();
  }
}
