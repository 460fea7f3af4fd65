import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Folders outlive a crash unless the process itself removes them on its way out. */
const folders = new Set<string>();
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** What a measurement has started, ended in the opposite order. */
export class CleanupScope {
  readonly #endings: (() => Promise<void> | void)[] = [];

  defer(ending: () => Promise<void> | void): void {
    this.#endings.push(ending);
  }

  /** A folder that is gone with the stage. */
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

/** Runs `work` with a stage of its own, which ends however the work does. */
export async function withCleanup<T>(work: (stage: CleanupScope) => Promise<T>): Promise<T> {
  const stage = new CleanupScope();
  try {
    return await work(stage);
  } finally {
    await stage.close();
  }
}
