/** Signals that the waiting caller has gone. An AbortSignal is one. */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(event: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(event: 'abort', listener: () => void): void;
}

/**
 * A cheap implementation for thousands of waiting requests: an AbortSignal with its events costs more than
 * the rest of an empty response.
 */
export class LightCancelSignal implements CancelSignal {
  aborted = false;
  /** Rarely more than one. A growing array would reserve room for seventeen. */
  #listeners: readonly (() => void)[] = [];

  addEventListener(_event: 'abort', listener: () => void): void {
    this.#listeners = [...this.#listeners, listener];
  }

  removeEventListener(_event: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener);
  }

  abort(): void {
    this.aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}
