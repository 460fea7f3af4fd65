/** A delivery that waits for its receiver to have room. Only its id is kept; the store has the rest. */
export interface QueuedDelivery {
  endpointId: string;
  id: string;
  /** Until when it is leased in the store. */
  leasedUntil: number;
  /** How large its body is. */
  bytes: number;
}

export interface ReceiverLimits {
  /** Deliveries in progress at once, in all. */
  maxConcurrent: number;
  /** The same for one receiver, so that a slow one cannot hold all slots. */
  maxPerHost: number;
  /**
   * Byte limit for the large deliveries in progress; a quarter of it for one receiver. One large delivery is
   * always allowed.
   */
  maxBytes: number;
  /** How many wait in memory at most. */
  maxQueued: number;
}

/**
 * Deliveries in progress and waiting, by receiver. Waiting receivers take turns, however many deliveries each
 * has.
 */
export class ReceiverQueue {
  readonly #limits: ReceiverLimits;
  readonly #busy = new Map<string, Load>();
  /** In the order of turns. */
  readonly #waiting = new Map<string, QueuedDelivery[]>();
  readonly #parked = new Map<string, QueuedDelivery>();
  readonly #all: Load = { count: 0, bytes: 0 };

  constructor(limits: ReceiverLimits) {
    this.#limits = limits;
  }

  /** Acquires a slot for a delivery to this host; false where there is none, or where others wait for it. */
  acquire(host: string, bytes: number): boolean {
    if (this.#waiting.has(host) || !this.#hasRoom(host, bytes)) return false;
    this.#take(host, bytes);
    return true;
  }

  release(host: string, bytes: number): void {
    const load = this.#loadOf(host);
    add(load, -1, bytes);
    add(this.#all, -1, bytes);
    if (load.count === 0) this.#busy.delete(host);
  }

  /** Queues a delivery. It is not kept where too many wait; it becomes due again in the store. */
  enqueue(host: string, parked: QueuedDelivery): void {
    const known = this.#parked.get(parked.id);
    if (known !== undefined) known.leasedUntil = parked.leasedUntil;
    if (known !== undefined || this.#parked.size >= this.#limits.maxQueued) return;
    this.#parked.set(parked.id, parked);
    const waiting = this.#waiting.get(host);
    if (waiting === undefined) this.#waiting.set(host, [parked]);
    else waiting.push(parked);
  }

  /** The next delivery in turn, with its slot acquired. */
  dequeue(): { host: string; parked: QueuedDelivery } | undefined {
    for (const [host, waiting] of this.#waiting) {
      if (!this.#hasRoom(host, waiting[0]?.bytes ?? 0)) continue;
      const parked = waiting.shift();
      this.#waiting.delete(host);
      if (waiting.length > 0) this.#waiting.set(host, waiting);
      if (parked === undefined) continue;
      this.#parked.delete(parked.id);
      this.#take(host, parked.bytes);
      return { host, parked };
    }
    return undefined;
  }

  #hasRoom(host: string, bytes: number): boolean {
    const { maxConcurrent, maxPerHost, maxBytes: most } = this.#limits;
    const load = this.#loadOf(host);
    return (
      this.#all.count < maxConcurrent &&
      load.count < maxPerHost &&
      fits(this.#all, bytes, most) &&
      fits(load, bytes, most / 4)
    );
  }

  #take(host: string, bytes: number): void {
    const load = this.#loadOf(host);
    add(load, 1, bytes);
    add(this.#all, 1, bytes);
    this.#busy.set(host, load);
  }

  #loadOf(host: string): Load {
    return this.#busy.get(host) ?? { count: 0, bytes: 0 };
  }
}

/** Deliveries in progress, and the bytes of the large ones. */
interface Load {
  count: number;
  bytes: number;
}

/** Small deliveries are limited by number only: they do not wait for large ones to a slow receiver. */
const SMALL_BODY_BYTES = 1024 * 1024;

function add(load: Load, direction: 1 | -1, bytes: number): void {
  load.count += direction;
  if (bytes > SMALL_BODY_BYTES) load.bytes += direction * bytes;
}

function fits(load: Load, bytes: number, most: number): boolean {
  return bytes <= SMALL_BODY_BYTES || load.bytes === 0 || load.bytes + bytes <= most;
}
