import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { Daemon } from './daemon.ts';
import { jsonLines } from './json-lines.ts';
import { ownershipFilter } from './container-labels.ts';

/** Waits between tries to reach the daemon again, the last one over and over. */
const RETRY_DELAYS_MS = [100, 250, 500, 1000, 2000, 5000];
/** Events are asked for from a little before the last one known: hearing of a thing twice does no harm. */
const OVERLAP_SECONDS = 1;

interface DaemonEvent {
  Action?: string;
  Type?: string;
  time?: number;
  Actor?: { ID?: string; Attributes?: Record<string, string> };
}

/** Something happened to a container of ours. */
export interface ContainerEvent {
  containerId: string;
  isGone: boolean;
  /** As the event has it: of a container that is gone it is the last that can be known. */
  exitCode: number | null;
}

export interface DockerEventsOptions {
  daemon: Daemon;
  installation: string;
  onChange: (change: ContainerEvent) => Promise<void>;
  /** The daemon is reached, for the first time or again: whatever happened meanwhile, it may not know any more. */
  onConnected: () => Promise<void>;
  onProblem: (what: string, error: unknown) => void;
}

/** Listens to the daemon until it is closed. */
export class DockerEvents {
  readonly #deps: DockerEventsOptions;
  readonly #closing = new AbortController();
  readonly #listening: Promise<void>;
  #since: number | undefined;

  constructor(parts: DockerEventsOptions) {
    this.#deps = parts;
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
        await this.#hear(() => (failures = 0));
      } catch (error) {
        if (!signal.aborted && failures === 0)
          this.#deps.onProblem('the Docker daemon does not tell what happens; trying again', error);
      }
      await pause(RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length - 1)], undefined, {
        signal,
      }).catch(() => undefined);
    }
  }

  /** Until the connection ends. */
  async #hear(onReached: () => void): Promise<void> {
    const { daemon, installation } = this.#deps;
    const { signal } = this.#closing;
    // By the daemon's own clock.
    this.#since ??= Math.floor(
      Date.parse(
        (await daemon.call((client) => client.info() as Promise<{ SystemTime: string }>)).SystemTime,
      ) / 1000,
    );
    const client = await daemon.client();
    const filters = { type: ['container'], ...ownershipFilter(installation) };
    const opening = client.getEvents({
      since: this.#since - OVERLAP_SECONDS,
      filters: JSON.stringify(filters),
      abortSignal: signal,
    }) as Promise<Readable>;
    // A daemon may begin to answer only with the first event, so this does not wait for it.
    const [stream] = await Promise.all([opening, this.#deps.onConnected().then(onReached)]);
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
