/** So many endpoints have a label of their own; the others are summed up as `other`. */
export const MAX_LABELLED_ENDPOINTS = 50;
const OTHER = 'other';
/** The activity of so many endpoints without a label is known; beyond, the least active are forgotten. */
const MAX_CANDIDATES = 20_000;
/** What so many endpoints did while they had a label is kept for when they get it again. */
const MAX_FORMER = 1_000;
/** Activity counts half after this time. */
const HALF_LIFE_MS = 10 * 60_000;
const RECONSIDER_MS = 15_000;
/** An endpoint takes the place of another only if it is so much busier, so that labels do not flap. */
const CLEARLY_BUSIER = 2;

interface Labelled<T> {
  stats: T;
  activity: number;
}

/**
 * Decides which endpoints have a label: at first every endpoint, then the busiest recently.
 *
 * No counter goes backwards. What an endpoint does while it has a label is counted in its own series, and
 * what it does without one in `other`: nothing ever moves from one to the other. A series that ends keeps its
 * counts, and continues from there if its endpoint gets a label again. So `sum(rate(…))` over all labels is
 * what happened, whatever changed hands.
 */
export class EndpointLabels<T> {
  readonly #create: () => T;
  readonly #now: () => number;
  readonly #labelled = new Map<string, Labelled<T>>();
  /** The activity of those without a label. */
  readonly #candidates = new Map<string, number>();
  /** The stats of those that had a label; the longest without one first. */
  readonly #former = new Map<string, T>();
  readonly other: T;
  #consideredAt: number;

  constructor(create: () => T, now: () => number) {
    this.#create = create;
    this.#now = now;
    this.other = create();
    this.#consideredAt = now();
  }

  /** Where to count what this endpoint did now. */
  active(endpointId: string): T {
    const labelled = this.#labelled.get(endpointId) ?? this.#labelIfRoom(endpointId);
    if (labelled !== undefined) {
      labelled.activity += 1;
      return labelled.stats;
    }
    const activity = this.#candidates.get(endpointId);
    if (activity !== undefined || this.#candidates.size < MAX_CANDIDATES)
      this.#candidates.set(endpointId, (activity ?? 0) + 1);
    return this.other;
  }

  /** Its own id or `other`. */
  labelOf(endpointId: string): string {
    const labelled = this.#labelled.get(endpointId) ?? this.#labelIfRoom(endpointId);
    return labelled === undefined ? OTHER : endpointId;
  }

  remove(endpointId: string): void {
    this.#labelled.delete(endpointId);
    this.#candidates.delete(endpointId);
    this.#former.delete(endpointId);
  }

  /** Every label with its stats, `other` last. Busier endpoints take the labels of others before. */
  *series(): Generator<[string, T]> {
    this.#reconsider();
    for (const [endpointId, { stats }] of this.#labelled) yield [endpointId, stats];
    yield [OTHER, this.other];
  }

  #labelIfRoom(endpointId: string): Labelled<T> | undefined {
    return this.#labelled.size < MAX_LABELLED_ENDPOINTS ? this.#label(endpointId, 0) : undefined;
  }

  #label(endpointId: string, activity: number): Labelled<T> {
    const labelled = { stats: this.#former.get(endpointId) ?? this.#create(), activity };
    this.#former.delete(endpointId);
    this.#candidates.delete(endpointId);
    this.#labelled.set(endpointId, labelled);
    return labelled;
  }

  #unlabel(endpointId: string, { stats, activity }: Labelled<T>): void {
    this.#labelled.delete(endpointId);
    this.#candidates.set(endpointId, activity);
    this.#former.set(endpointId, stats);
    if (this.#former.size <= MAX_FORMER) return;
    const [longest] = this.#former.keys();
    this.#former.delete(longest as string);
  }

  #reconsider(): void {
    const elapsed = this.#now() - this.#consideredAt;
    if (elapsed < RECONSIDER_MS) return;
    this.#consideredAt += elapsed;
    const busiest = [...this.#candidates].sort(([, one], [, two]) => two - one);
    const quietest = [...this.#labelled].sort(([, one], [, two]) => one.activity - two.activity);
    for (const [endpointId, activity] of busiest) {
      if (this.#labelled.size < MAX_LABELLED_ENDPOINTS) {
        this.#label(endpointId, activity);
        continue;
      }
      const [formerId, former] = quietest.shift() ?? [];
      if (formerId === undefined || former === undefined) break;
      if (activity <= CLEARLY_BUSIER * former.activity + 1) break;
      this.#unlabel(formerId, former);
      this.#label(endpointId, activity);
    }
    this.#decay(0.5 ** (elapsed / HALF_LIFE_MS));
  }

  #decay(factor: number): void {
    for (const labelled of this.#labelled.values()) labelled.activity *= factor;
    for (const [endpointId, activity] of this.#candidates) {
      if (activity * factor < 0.1) this.#candidates.delete(endpointId);
      else this.#candidates.set(endpointId, activity * factor);
    }
  }
}
