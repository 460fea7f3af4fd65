/** How much later than asked for something may come. */
const SLOT_MS = 500;
/** Whoever waits for less gets a timer of its own, and is called on time. */
const LONG_MS = 10_000;

interface Slot {
  callbacks: Set<() => void>;
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
  const slot = slots.get(at) ?? newSlot(at);
  slot.callbacks.add(callback);
  return () => {
    slot.callbacks.delete(callback);
    if (slot.callbacks.size > 0 || slots.get(at) !== slot) return;
    clearTimeout(slot.timer);
    slots.delete(at);
  };
}

function newSlot(at: number): Slot {
  const callbacks = new Set<() => void>();
  const timer = setTimeout(() => {
    slots.delete(at);
    for (const callback of callbacks) callback();
  }, at * SLOT_MS - performance.now());
  const slot: Slot = { callbacks, timer };
  slots.set(at, slot);
  return slot;
}
