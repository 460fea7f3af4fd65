import { ChurnMap } from './churn-map.ts';

/** How late a shared timer may fire. */
const SLOT_MS = 500;
/** Shorter waits get their own timer and are called on time. */
const LONG_MS = 10_000;

interface Slot {
  /** By their cancel function. */
  callbacks: ChurnMap<() => void, () => void>;
  timer: NodeJS.Timeout;
}

const slots = new Map<number, Slot>();

/**
 * Calls back after this many milliseconds. Long waits share a timer and are called together, up to half a
 * second late: thousands of polls that end one by one would wake the process for each. Returns a function
 * that cancels.
 */
export function callAfter(milliseconds: number, callback: () => void): () => void {
  if (milliseconds < LONG_MS) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  }
  const at = Math.ceil((performance.now() + milliseconds) / SLOT_MS);
  const { callbacks, timer } = slots.get(at) ?? newSlot(at);
  const cancel = (): void => {
    callbacks.delete(cancel);
    // The timer stays for the next caller. It is unreferenced, so it keeps no process alive.
    if (callbacks.size === 0) timer.unref();
  };
  if (callbacks.size === 0) timer.ref();
  callbacks.set(cancel, callback);
  return cancel;
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
