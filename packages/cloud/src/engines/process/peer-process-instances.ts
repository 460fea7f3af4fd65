import { DEFAULT_LOG_LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../support/clock.ts';
import { InstanceFolder } from './instance-folder.ts';
import { ProcessInstance } from './process-instance.ts';
import { isAlive } from './instance-processes.ts';
import { bootId } from './process-table.ts';

/**
 * Instances that another Berth server on this machine manages. Their addresses and usage are read from their
 * folders; their logs and their end are left to that server.
 */
export class PeerProcessInstances {
  readonly #pathOf: (id: string) => string;
  readonly #clock: Clock;
  readonly #cache = new Map<string, ProcessInstance>();
  readonly #boot = process.platform === 'linux' ? bootId() : '';

  constructor(pathOf: (id: string) => string, clock: Clock) {
    this.#pathOf = pathOf;
    this.#clock = clock;
  }

  /** Finds a running instance. */
  find(id: string): ProcessInstance | undefined {
    const known = this.#cache.get(id);
    if (known?.supervisorIsAlive === true) return known;
    this.#cache.delete(id);
    const found = this.#find(id);
    if (found !== undefined) this.#cache.set(id, found);
    return found;
  }

  #find(id: string): ProcessInstance | undefined {
    const folder = new InstanceFolder(this.#pathOf(id));
    const saved = folder.readSaved();
    const started = folder.readStarted();
    if (
      saved === undefined ||
      started === undefined ||
      saved.bootId !== this.#boot ||
      !isAlive(started.supervisor)
    )
      return undefined;
    return new ProcessInstance({
      saved,
      folder,
      started,
      logLimits: DEFAULT_LOG_LIMITS,
      logFolder: '',
      clock: this.#clock,
      onEnded: () => undefined,
      onProblem: () => undefined,
    });
  }
}
