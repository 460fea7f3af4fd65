/** Tells that whoever waits has gone. An AbortSignal is one. */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(event: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(event: 'abort', listener: () => void): void;
}

/** One for those who wait in thousands: an AbortSignal with its events costs more than the rest of an empty answer. */
export class LightCancelSignal implements CancelSignal {
  aborted = false;
  /** Rarely more than one. A list that grows in place would reserve room for seventeen. */
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
