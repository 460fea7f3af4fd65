import { setTimeout as pause } from 'node:timers/promises';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { DockerEngine, DockerEngineOptions } from './docker-engine.ts';
import { findDaemon, candidateHosts } from './daemon-discovery.ts';

/** How often it is looked for a daemon that was not there. Asking costs a file that is not found. */
const POLL_INTERVAL_MS = 5_000;

export interface DockerConnectionOptions extends Omit<DockerEngineOptions, 'log'> {
  log: Log;
}

/** The engine for a daemon that may come later. It is loaded when there is one: a machine without Docker pays nothing for it. */
export class DockerConnection {
  readonly #options: DockerConnectionOptions;
  readonly #closing = new AbortController();
  #engine: Promise<DockerEngine> | undefined;
  #discovery: Promise<void> | undefined;

  constructor(parts: DockerConnectionOptions) {
    this.#options = parts;
  }

  engine(): Promise<DockerEngine> {
    this.#engine ??= import('./docker-engine.ts').then(({ createDockerEngine }) =>
      createDockerEngine(this.#options),
    );
    return this.#engine;
  }

  /** Looks for a daemon until one answers, then calls `onFound` once; again later where that fails. */
  start(onFound: (engine: DockerEngine) => Promise<void>): void {
    this.#discovery = this.#discover(onFound);
  }

  /** The engine itself is closed by whoever runs instances with it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#discovery;
  }

  async #discover(onFound: (engine: DockerEngine) => Promise<void>): Promise<void> {
    const { host, log } = this.#options;
    const { signal } = this.#closing;
    const places = candidateHosts(host);
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
      await pause(POLL_INTERVAL_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
