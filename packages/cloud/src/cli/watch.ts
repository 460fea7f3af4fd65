import { setTimeout as pause } from 'node:timers/promises';
import { ApiError } from './api-client.ts';
import type { ApiClient } from './api-client.ts';
import type { Options } from './command-definition.ts';
import type { Output } from './output.ts';

const INTERVAL_MS = 2_000;
/** Changes that come in quick succession are shown together. */
const SHORTEST_INTERVAL_MS = 250;
/** A hint between servers may be lost, so everything is read again now and then. */
const LONGEST_INTERVAL_MS = 60_000;

export const watchOption = {
  watch: { kind: 'switch', short: 'w', description: 'Show it again every 2 seconds, until Ctrl-C.' },
} as const satisfies Options;

export const watchEventsOption = {
  watch: { kind: 'switch', short: 'w', description: 'Show it again when something changes, until Ctrl-C.' },
} as const satisfies Options;

interface Watched {
  options: { watch: boolean };
  output: Output;
}

/** Shows something once, or with --watch again and again. */
export async function repeatWhileWatched(
  { options, output }: Watched,
  show: () => Promise<void>,
): Promise<void> {
  await show();
  while (options.watch) {
    await pause(INTERVAL_MS);
    output.startAgain();
    await show();
  }
}

/**
 * Shows something once, or with --watch whenever an event of this address says that something changed. Where
 * the server or the key has no events, every two seconds.
 */
export async function repeatOnEvents(
  { options, output }: Watched,
  client: ApiClient,
  path: string,
  show: () => Promise<void>,
): Promise<void> {
  if (!options.watch) return show();
  const changes = new Changes();
  void followEvents(client, path, changes);
  for (let isFirst = true; ; isFirst = false) {
    await changes.next();
    if (!isFirst) output.startAgain();
    await show();
    await pause(SHORTEST_INTERVAL_MS);
  }
}

/** Tells the watching loop that something changed. */
class Changes {
  /** How long it waits for a change at most. */
  longestMs = LONGEST_INTERVAL_MS;
  #hasChanged = false;
  #wake = (): void => undefined;

  notify(): void {
    this.#hasChanged = true;
    this.#wake();
  }

  async next(): Promise<void> {
    if (!this.#hasChanged) {
      const late = new AbortController();
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      await Promise.race([
        woken,
        pause(this.longestMs, undefined, { signal: late.signal }).catch(() => undefined),
      ]);
      late.abort();
    }
    this.#hasChanged = false;
  }
}

/** The first event says that the stream stands; what is read after it misses nothing. */
async function followEvents(client: ApiClient, path: string, changes: Changes): Promise<void> {
  for (;;) {
    try {
      for await (const _ of client.events(path, new AbortController().signal)) changes.notify();
    } catch (error) {
      if (error instanceof ApiError) changes.longestMs = INTERVAL_MS;
      // Where the server is away, what is shown next says so.
      changes.notify();
      if (error instanceof ApiError) return;
    }
    await pause(INTERVAL_MS);
  }
}
