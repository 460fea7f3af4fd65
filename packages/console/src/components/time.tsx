import { useSyncExternalStore } from 'react';
import { formatAge } from './format.ts';

const TICK_MS = 5_000;
/** Made once, and when it is first used: making one takes longer than the rest of a table row. */
let exact: Intl.DateTimeFormat | undefined;
function formatExact(time: Date): string {
  exact ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return exact.format(time);
}

/** How long ago, kept up to date; the exact time on hover. */
export function Ago({ at }: { at: string | number | null | undefined }) {
  useSyncExternalStore(subscribe, () => lastTick);
  if (at === null || at === undefined) return <span className="muted">never</span>;
  const time = new Date(at);
  return (
    <time className="nowrap" dateTime={time.toISOString()} title={formatExact(time)}>
      {formatAge(Date.now() - time.getTime())}
    </time>
  );
}

/** One clock for all: a list has hundreds of times. It stands still while nothing shows one. */
let lastTick = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(onTick: () => void): () => void {
  listeners.add(onTick);
  if (timer === undefined) {
    timer = setInterval(() => {
      lastTick = Date.now();
      for (const listener of listeners) listener();
    }, TICK_MS);
  }
  return () => {
    listeners.delete(onTick);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}
