import { setTimeout as pause } from 'node:timers/promises';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { DockerEngine, DockerEngineOptions } from './docker-engine.ts';
import { findDaemon, candidateHosts } from './daemon-discovery.ts';

/** The interval between searches for a daemon. A search costs a failed file lookup. */
const POLL_INTERVAL_MS = 5_000;
/**
 * The first search waits for the first requests: a daemon that answers costs 200 modules and a few programs,
 * 0.2 s of a start.
 */
const FIRST_SEARCH_DELAY_MS = 200;

export interface DockerConnectionOptions extends Omit<DockerEngineOptions, 'log'> {
  log: Log;
}

/**
 * The engine for a daemon that may start later. Its module is loaded when a daemon answers, so a machine
 * without Docker does not pay for it.
 */
export class DockerConnection {
  readonly #options: DockerConnectionOptions;
  readonly #closing = new AbortController();
  #engine: Promise<DockerEngine> | undefined;
  #discovery: Promise<void> | undefined;

  constructor(options: DockerConnectionOptions) {
    this.#options = options;
  }

  engine(): Promise<DockerEngine> {
    this.#engine ??= import('./docker-engine.ts').then(({ createDockerEngine }) =>
      createDockerEngine(this.#options),
    );
    return this.#engine;
  }

  /** Searches until a daemon answers, then calls `onFound` once; if that fails, it tries again later. */
  start(onFound: (engine: DockerEngine) => Promise<void>): void {
    this.#discovery = this.#discover(onFound);
  }

  /** The engine itself is closed by its owner. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#discovery;
  }

  async #discover(onFound: (engine: DockerEngine) => Promise<void>): Promise<void> {
    const { host, log } = this.#options;
    const { signal } = this.#closing;
    const hosts = candidateHosts(host);
    const wait = (milliseconds: number): Promise<void> =>
      pause(milliseconds, undefined, { signal, ref: false }).catch(() => undefined);
    await wait(FIRST_SEARCH_DELAY_MS);
    for (let attempts = 0; !signal.aborted; attempts += 1) {
      try {
        const host = await findDaemon(hosts);
        log.info({ daemon: host }, 'a Docker daemon answers');
        return await onFound(await this.engine());
      } catch (error) {
        const isAbsent = error instanceof BerthError && error.code === 'unavailable';
        if (!isAbsent) log.warn({ err: error }, 'the Docker daemon cannot be used; trying again');
        else if (attempts === 0) log.debug({ err: error }, 'no Docker daemon was found; still searching');
      }
      await wait(POLL_INTERVAL_MS);
    }
  }
}
