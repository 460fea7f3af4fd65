import { setTimeout as pause } from 'node:timers/promises';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { DockerEngine, DockerEngineParts } from './engine.ts';
import { findDaemon, usualPlaces } from './finding.ts';

/** How often it is looked for a daemon that was not there. Asking costs a file that is not found. */
const LOOK_EVERY_MS = 5_000;

export interface DockerConnectionParts extends Omit<DockerEngineParts, 'log'> {
  log: Log;
  /** Called once, when a daemon answers for the first time. */
  onFound: (engine: DockerEngine) => Promise<void>;
}

/** The engine for a daemon that may come later. It is loaded when there is one: a machine without Docker pays nothing for it. */
export class DockerConnection {
  readonly #parts: DockerConnectionParts;
  readonly #leaving = new AbortController();
  #engine: Promise<DockerEngine> | undefined;
  #looking: Promise<void> | undefined;

  constructor(parts: DockerConnectionParts) {
    this.#parts = parts;
  }

  engine(): Promise<DockerEngine> {
    this.#engine ??= import('./engine.ts').then(({ dockerEngine }) => dockerEngine(this.#parts));
    return this.#engine;
  }

  /** Looks for a daemon from now on, until there is one. */
  begin(): void {
    this.#looking = this.#look();
  }

  /** The engine itself is closed by whoever runs instances with it. */
  async close(): Promise<void> {
    this.#leaving.abort();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { host, log, onFound } = this.#parts;
    const { signal } = this.#leaving;
    const places = usualPlaces(host);
    for (let looks = 0; !signal.aborted; looks += 1) {
      try {
        const place = await findDaemon(places);
        log.info({ daemon: place }, 'a Docker daemon answers');
        return await onFound(await this.engine());
      } catch (error) {
        const isAbsent = error instanceof BerthError && error.code === 'unavailable';
        if (!isAbsent) log.warn({ err: error }, 'the Docker daemon cannot be used; trying again');
        else if (looks === 0) log.debug({ err: error }, 'no Docker daemon is used for now');
      }
      await pause(LOOK_EVERY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
