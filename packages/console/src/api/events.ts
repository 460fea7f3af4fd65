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

type Listener = (event: CloudEvent) => void;

const listeners = new Set<Listener>();
const states = new Set<() => void>();
let source: EventSource | undefined;
let connected = true;

/** Calls the listener for every event while the component is on screen. */
export function useEvents(listener: Listener): void {
  useEffect(() => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, [listener]);
}

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

async function checkServer(): Promise<void> {
  try {
    await fetch('/healthz');
    setConnected(true);
  } catch {
    setConnected(false);
    setTimeout(() => void checkServer(), 1_000);
  }
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
  for (const listener of listeners) listener(event);
  if (event.type === 'reset') void queryClient.invalidateQueries();
  else void refresh(queryClient, changedPaths(event));
}
