/** A delivery that waits for its receiver to have room. Only its name is kept; the store has the rest. */
export interface QueuedDelivery {
  endpointId: string;
  id: string;
  /** Until when the store shows it to nobody else. */
  leasedUntil: number;
  /** How large its body is. */
  bytes: number;
}

export interface ReceiverLimits {
  /** Deliveries under way at once, in all. */
  maxConcurrent: number;
  /** And to one receiver, so that a slow one cannot hold all places. */
  maxPerHost: number;
  /** How large the large ones under way are together at most, and those to one receiver a quarter of that; one always has its place. */
  maxBytes: number;
  /** How many wait in memory at most. */
  maxQueued: number;
}

/** Who is being delivered to, and who waits. Receivers that wait take turns, however many deliveries each has. */
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

  /** Takes a place for a delivery to this host; false where there is none, or where others wait for it. */
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

  /** Lets a delivery wait for its turn. It is not remembered where too many wait; the store brings it back. */
  enqueue(host: string, parked: QueuedDelivery): void {
    const known = this.#parked.get(parked.id);
    if (known !== undefined) known.leasedUntil = parked.leasedUntil;
    if (known !== undefined || this.#parked.size >= this.#limits.maxQueued) return;
    this.#parked.set(parked.id, parked);
    const waiting = this.#waiting.get(host);
    if (waiting === undefined) this.#waiting.set(host, [parked]);
    else waiting.push(parked);
  }

  /** The next one whose turn it is, with its place taken. */
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

/** Deliveries under way, and how large the large ones among them are. */
interface Load {
  count: number;
  bytes: number;
}

/** Small ones are limited by their number: they do not wait for large ones that a slow receiver holds up. */
const SMALL_BODY_BYTES = 1024 * 1024;

function add(load: Load, direction: 1 | -1, bytes: number): void {
  load.count += direction;
  if (bytes > SMALL_BODY_BYTES) load.bytes += direction * bytes;
}

function fits(load: Load, bytes: number, most: number): boolean {
  return bytes <= SMALL_BODY_BYTES || load.bytes === 0 || load.bytes + bytes <= most;
}
