import type { Log } from './log.ts';

type Listener<Payload> = (payload: Payload) => void;

/**
 * Typed events inside one process. Listeners run synchronously, in the order in which they
 * subscribed. A listener that throws is logged and does not keep the others from running.
 */
export class EventBus<Events extends object> {
  readonly #log: Pick<Log, 'error'>;
  /** Arrays are replaced, never changed: a listener may unsubscribe while an event is published. */
  readonly #listeners = new Map<keyof Events, readonly Listener<never>[]>();

  constructor(log: Pick<Log, 'error'>) {
    this.#log = log;
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
        this.#log.error({ err: error, event: name }, 'an event listener failed');
      }
    }
  }
}
