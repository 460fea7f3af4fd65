/** Tells that whoever waits has gone. An AbortSignal is one. */
export interface Departure {
  readonly aborted: boolean;
  addEventListener(event: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(event: 'abort', listener: () => void): void;
}

/** One for those who wait in thousands: an AbortSignal with its events costs more than the rest of an empty answer. */
export class LightDeparture implements Departure {
  aborted = false;
  #listener: (() => void) | undefined;

  /** There is one who listens: the one who waits. */
  addEventListener(_event: 'abort', listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(_event: 'abort', listener: () => void): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  depart(): void {
    this.aborted = true;
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.();
  }
}
