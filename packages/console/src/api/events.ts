import { useEffect, useSyncExternalStore } from 'react';
import { changedPaths } from './changed-paths.ts';
import { refresh, queryClient } from './queries.ts';

/** One change, as `/v2/events` tells it (docs/events.md). */
export interface CloudEvent {
  type: string;
  at?: string;
  endpointId?: string;
  podId?: string;
  volumeId?: string;
  [field: string]: unknown;
}

const CHECK_MS = 1_000;

const states = new Set<() => void>();
let source: EventSource | undefined;
let connected = true;

/** Keeps what is on screen up to date. Returns whether the server answers. */
export function useLiveUpdates(): boolean {
  useEffect(() => {
    open();
    return close;
  }, []);
  return useSyncExternalStore(
    (changed) => {
      states.add(changed);
      return () => states.delete(changed);
    },
    () => connected,
  );
}

function open(): void {
  source = new EventSource('/v2/events');
  source.onopen = () => setConnected(true);
  source.onerror = () => {
    // A server that refuses closes for good; one that is away is tried again by the browser.
    if (source?.readyState === EventSource.CLOSED) setTimeout(reopen, 5_000);
    void checkServer();
  };
  source.onmessage = ({ data }: MessageEvent<string>) => publish(data);
}

function reopen(): void {
  if (source === undefined) return;
  close();
  open();
}

function close(): void {
  source?.close();
  source = undefined;
}

let checking = false;

/** Asks until the server answers. */
async function checkServer(): Promise<void> {
  if (checking) return;
  checking = true;
  while (source !== undefined) {
    const answers = await fetch('/healthz').then(
      () => true,
      () => false,
    );
    setConnected(answers);
    if (answers) break;
    await delay(CHECK_MS);
  }
  checking = false;
}

function setConnected(next: boolean): void {
  if (connected === next) return;
  connected = next;
  for (const changed of states) changed();
  // Something may have changed while nobody listened.
  if (next) void queryClient.invalidateQueries();
}

function publish(text: string): void {
  const event = JSON.parse(text) as CloudEvent;
  if (event.type === 'reset') void queryClient.invalidateQueries();
  for (const path of changedPaths(event)) stale.add(path);
  if (stale.size > 0 && !isRefreshing) void refreshStale();
}

/**
 * The first change is read at once; those that follow are read together, soon after. Where reading takes
 * long, the pause is longer too: at most a quarter of the time is spent on it.
 */
const MIN_PAUSE_MS = 100;
const PAUSE_FACTOR = 3;
const MAX_REFRESH_MS = 2_000;
const stale = new Set<string>();
let isRefreshing = false;

async function refreshStale(): Promise<void> {
  isRefreshing = true;
  while (stale.size > 0) {
    const paths = [...stale];
    stale.clear();
    const began = performance.now();
    // One answer that hangs must not hold up the others.
    await Promise.race([refresh(queryClient, paths), delay(MAX_REFRESH_MS)]);
    const pause = Math.max(MIN_PAUSE_MS, (performance.now() - began) * PAUSE_FACTOR);
    await delay(pause);
  }
  isRefreshing = false;
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
