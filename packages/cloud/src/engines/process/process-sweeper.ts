import type { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { LogRetention } from '../logs/log-retention.ts';
import type { ImageEnvironments } from './image-environments.ts';
import type { ProcessRegistry } from './process-registry.ts';
import type { RemovedFolders } from './removed-folders.ts';

/** The mutex key of the folder sweep; no instance id begins with a dot. */
const SWEEP_LOCK = '.sweep';

interface ProcessSweeperDeps {
  registry: ProcessRegistry;
  mutex: KeyedMutex;
  logs: LogRetention;
  removed: RemovedFolders;
  environments: ImageEnvironments;
  onProblem(what: string, error: unknown): void;
}

/** Deletes what instances leave behind: expired logs, folders of removed ones, unused Python environments. */
export class ProcessSweeper {
  readonly #deps: ProcessSweeperDeps;

  constructor(deps: ProcessSweeperDeps) {
    this.#deps = deps;
  }

  async sweep(): Promise<void> {
    await Promise.all([this.sweepLogs(), this.sweepFolders(), this.sweepEnvironments()]);
  }

  async sweepLogs(): Promise<void> {
    try {
      await this.#deps.logs.deleteExpired((id) => this.#deps.registry.has(id));
    } catch (error) {
      this.#deps.onProblem('expired logs could not be deleted', error);
    }
  }

  async sweepFolders(): Promise<void> {
    try {
      await this.#deps.mutex.runExclusive(SWEEP_LOCK, () => this.#deps.removed.sweep());
    } catch (error) {
      this.#deps.onProblem('the folders of removed instances could not be deleted', error);
    }
  }

  async sweepEnvironments(): Promise<void> {
    try {
      await this.deleteEnvironments();
    } catch (error) {
      this.#deps.onProblem('unused Python environments could not be deleted', error);
    }
  }

  /** Those that were not used for so long, by default as the settings say; answers their folders. */
  deleteEnvironments(keepMs?: number): Promise<string[]> {
    const running = new Set(this.#deps.registry.values().map(({ saved }) => saved.python));
    return this.#deps.mutex.runExclusive(SWEEP_LOCK, () => this.#deps.environments.sweep(running, keepMs));
  }
}
