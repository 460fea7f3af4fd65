import { useSyncExternalStore } from 'react';

let opened = '';
const listeners = new Set<() => void>();

/** The title of the page that is on screen. */
export function announceTitle(title: string): void {
  opened = title;
  for (const listener of listeners) listener();
}

export function useAnnouncedTitle(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => opened,
  );
}
