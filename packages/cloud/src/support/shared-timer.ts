import { ChurnMap } from './churn-map.ts';

/** How much later than asked for something may come. */
const SLOT_MS = 500;
/** Whoever waits for less gets a timer of its own, and is called on time. */
const LONG_MS = 10_000;

interface Slot {
  /** By what takes them back. */
  callbacks: ChurnMap<() => void, () => void>;
  timer: NodeJS.Timeout;
}

const slots = new Map<number, Slot>();

/**
 * Calls back after so many milliseconds. Those who wait for long share a timer and are called
 * up to half a second later, together: thousands of polls that end one by one would wake the
 * process for each of them. Answers what takes it back.
 */
export function callAfter(milliseconds: number, callback: () => void): () => void {
  if (milliseconds < LONG_MS) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  }
  const at = Math.ceil((performance.now() + milliseconds) / SLOT_MS);
  const { callbacks, timer } = slots.get(at) ?? newSlot(at);
  const takeBack = (): void => {
    callbacks.delete(takeBack);
    // The timer stays for whoever comes next. Where nobody does, it keeps no process alive.
    if (callbacks.size === 0) timer.unref();
  };
  if (callbacks.size === 0) timer.ref();
  callbacks.set(takeBack, callback);
  return takeBack;
}

function newSlot(at: number): Slot {
  const callbacks: Slot['callbacks'] = new ChurnMap();
  const timer = setTimeout(
    () => {
      slots.delete(at);
      for (const callback of callbacks.values()) callback();
    },
    at * SLOT_MS - performance.now(),
  );
  const slot: Slot = { callbacks, timer };
  slots.set(at, slot);
  return slot;
}
