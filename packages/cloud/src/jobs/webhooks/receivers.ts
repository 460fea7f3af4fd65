/** A delivery that waits for its receiver to have room. Only its name is kept; the store has the rest. */
export interface Parked {
  endpointId: string;
  id: string;
  /** Until when the store shows it to nobody else. */
  until: number;
}

export interface ReceiverLimits {
  /** Deliveries under way at once, in all. */
  together: number;
  /** And to one receiver, so that a slow one cannot hold all places. */
  perHost: number;
  /** How many wait in memory at most. */
  parked: number;
}

/** Who is being delivered to, and who waits. Receivers that wait take turns, however many deliveries each has. */
export class Receivers {
  readonly #limits: ReceiverLimits;
  readonly #busy = new Map<string, number>();
  /** In the order of turns. */
  readonly #waiting = new Map<string, Parked[]>();
  readonly #parked = new Map<string, Parked>();
  #under = 0;

  constructor(limits: ReceiverLimits) {
    this.#limits = limits;
  }

  /** Takes a place for a delivery to this host; false where there is none, or where others wait for it. */
  enter(host: string): boolean {
    if (this.#waiting.has(host) || !this.#hasRoom(host)) return false;
    this.#take(host);
    return true;
  }

  leave(host: string): void {
    this.#under -= 1;
    const left = (this.#busy.get(host) ?? 0) - 1;
    if (left > 0) this.#busy.set(host, left);
    else this.#busy.delete(host);
  }

  /** Lets a delivery wait for its turn. It is not remembered where too many wait; the store brings it back. */
  park(host: string, parked: Parked): void {
    const known = this.#parked.get(parked.id);
    if (known !== undefined) known.until = parked.until;
    if (known !== undefined || this.#parked.size >= this.#limits.parked) return;
    this.#parked.set(parked.id, parked);
    const waiting = this.#waiting.get(host);
    if (waiting === undefined) this.#waiting.set(host, [parked]);
    else waiting.push(parked);
  }

  /** The next one whose turn it is, with its place taken. */
  next(): { host: string; parked: Parked } | undefined {
    for (const [host, waiting] of this.#waiting) {
      if (!this.#hasRoom(host)) continue;
      const parked = waiting.shift();
      this.#waiting.delete(host);
      if (waiting.length > 0) this.#waiting.set(host, waiting);
      if (parked === undefined) continue;
      this.#parked.delete(parked.id);
      this.#take(host);
      return { host, parked };
    }
    return undefined;
  }

  #hasRoom(host: string): boolean {
    return this.#under < this.#limits.together && (this.#busy.get(host) ?? 0) < this.#limits.perHost;
  }

  #take(host: string): void {
    this.#under += 1;
    this.#busy.set(host, (this.#busy.get(host) ?? 0) + 1);
  }
}
