import type { OutputQuery, OutputSource } from '../logs/output-log.ts';
import type { SourceLine } from '../logs/source-line.ts';
import type { Daemon } from './daemon.ts';
import { openDaemonLog, readDaemonLog } from './daemon-log.ts';
import { isNotFound } from './client/docker.errors.ts';

/** The output of a container, as the daemon keeps it. */
export class ContainerOutput implements OutputSource {
  readonly containerId: string;
  readonly lostLines =
    'Lines are missing here: Docker keeps only the newest of what is written while Berth is away.';
  readonly #daemon: Daemon;

  constructor(daemon: Daemon, containerId: string) {
    this.#daemon = daemon;
    this.containerId = containerId;
  }

  async *read(query: OutputQuery): AsyncGenerator<SourceLine[], void, undefined> {
    yield* readDaemonLog(await this.#daemon.client(), { container: this.containerId, ...query });
  }

  /**
   * Podman's stream sometimes misses lines, its log does not. So the stream only signals when to read the
   * log.
   */
  async openNotifier(signal: AbortSignal): Promise<(() => Promise<boolean>) | undefined> {
    if (!(await this.#daemon.isPodman())) return undefined;
    const stream = await openDaemonLog(await this.#daemon.client(), {
      container: this.containerId,
      follow: true,
      tail: 0,
      signal,
    });
    let dataReady = Promise.withResolvers<void>();
    let isClosed = false;
    stream.on('data', () => dataReady.resolve());
    stream.on('error', () => stream.destroy());
    stream.on('close', () => {
      isClosed = true;
      dataReady.resolve();
    });
    return async () => {
      if (isClosed) return false;
      await dataReady.promise;
      dataReady = Promise.withResolvers<void>();
      return !isClosed;
    };
  }

  isGone(error: unknown): boolean {
    return isNotFound(error);
  }
}
