import { setTimeout as pause } from 'node:timers/promises';
import type { Daemon } from './daemon.ts';
import type { DaemonEvent, DaemonInfo } from './client/docker-objects.ts';
import { jsonLines } from './client/json-lines.ts';
import { ownershipFilter } from './container-labels.ts';

/** Delays between attempts to reconnect; the last one repeats. */
const RETRY_DELAYS_MS = [100, 250, 500, 1000, 2000, 5000];
/** Events are requested from a little before the last known one: handling an event twice is harmless. */
const OVERLAP_SECONDS = 1;

/** A container of this installation ended or was removed. */
export interface ContainerEvent {
  containerId: string;
  isGone: boolean;
  /** From the event: for a removed container this is the last known exit code. */
  exitCode: number | null;
}

export interface DockerEventsOptions {
  daemon: Daemon;
  installation: string;
  onChange: (change: ContainerEvent) => Promise<void>;
  /** Called when the daemon is connected, for the first time or again: events may have been missed. */
  onConnected: () => Promise<void>;
  onProblem: (what: string, error: unknown) => void;
}

/** Subscribes to the daemon's events until closed. */
export class DockerEvents {
  readonly #deps: DockerEventsOptions;
  readonly #closing = new AbortController();
  readonly #listening: Promise<void>;
  #since: number | undefined;

  constructor(options: DockerEventsOptions) {
    this.#deps = options;
    this.#listening = this.#listen();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#listening;
  }

  async #listen(): Promise<void> {
    const { signal } = this.#closing;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await this.#readEvents(() => (failures = 0));
      } catch (error) {
        if (!signal.aborted && failures === 0)
          this.#deps.onProblem('the events of the Docker daemon cannot be read; trying again', error);
      }
      await pause(RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length - 1)], undefined, {
        signal,
      }).catch(() => undefined);
    }
  }

  /** Reads events until the connection ends. */
  async #readEvents(onConnected: () => void): Promise<void> {
    const { daemon, installation } = this.#deps;
    const { signal } = this.#closing;
    // The daemon's clock, not ours.
    this.#since ??= Math.floor(
      Date.parse((await daemon.call((client) => client.get<DaemonInfo>('/info'))).SystemTime ?? '') / 1000,
    );
    const client = await daemon.client();
    const filters = { type: ['container'], ...ownershipFilter(installation) };
    const query = { since: this.#since - OVERLAP_SECONDS, filters };
    const opening = client.stream('GET', '/events', { query, signal });
    // A daemon may send its response only with the first event, so this does not wait for it.
    const [stream] = await Promise.all([opening, this.#deps.onConnected().then(onConnected)]);
    for await (const { Action: action, Actor: actor, time } of jsonLines<DaemonEvent>(stream)) {
      if (time !== undefined) this.#since = Math.max(this.#since, time);
      if (actor?.ID === undefined || !(action === 'die' || action === 'destroy')) continue;
      const exitCode = actor.Attributes?.['exitCode'];
      await this.#deps.onChange({
        containerId: actor.ID,
        isGone: action === 'destroy',
        exitCode: exitCode === undefined ? null : Number(exitCode),
      });
    }
  }
}
