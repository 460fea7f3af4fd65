type Listener<Payload> = (payload: Payload) => void;

/**
 * Typed events inside one process. Listeners run synchronously, in the order in which they
 * subscribed. A listener that throws is reported and does not keep the others from running.
 */
export class EventBus<Events extends object> {
  readonly #reportError: (error: unknown, event: keyof Events) => void;
  /** Arrays are replaced, never changed: a listener may unsubscribe while an event is published. */
  readonly #listeners = new Map<keyof Events, readonly Listener<never>[]>();

  constructor(reportError: (error: unknown, event: keyof Events) => void = throwUncaught) {
    this.#reportError = reportError;
  }

  /** Returns the function that unsubscribes. */
  subscribe<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
    return () => {
      const remaining = (this.#listeners.get(name) ?? []).filter((other) => other !== listener);
      this.#listeners.set(name, remaining);
    };
  }

  publish<Name extends keyof Events>(name: Name, payload: Events[Name]): void {
    const listeners = this.#listeners.get(name) as readonly Listener<Events[Name]>[] | undefined;
    if (listeners === undefined) return;
    for (const listener of listeners) {
      try {
        listener(payload);
      } catch (error) {
        this.#reportError(error, name);
      }
    }
  }
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
