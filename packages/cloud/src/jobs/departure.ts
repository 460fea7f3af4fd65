/** Tells that whoever waits has gone. An AbortSignal is one. */
export interface Departure {
  readonly aborted: boolean;
  addEventListener(event: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(event: 'abort', listener: () => void): void;
}

/** One for those who wait in thousands: an AbortSignal with its events costs more than the rest of an empty answer. */
export class LightDeparture implements Departure {
  aborted = false;
  #listeners: (() => void)[] = [];

  addEventListener(_event: 'abort', listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_event: 'abort', listener: () => void): void {
    const index = this.#listeners.indexOf(listener);
    if (index !== -1) this.#listeners.splice(index, 1);
  }

  depart(): void {
    this.aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}
