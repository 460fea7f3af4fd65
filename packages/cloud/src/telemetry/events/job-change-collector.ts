import type { JobSample } from '../../domain/account-event.ts';
import type { Job } from '../../domain/job-records.ts';

/** One endpoint has at most one event in this time. */
const WINDOW_MS = 200;
/** With more busy endpoints than this, each waits longer, so that the events in a second stay as many. */
const ENDPOINTS_PER_WINDOW = 40;
const MAX_SAMPLES = 10;

interface EndpointChanges {
  changes: number;
  /** By job id; the newest last. */
  samples: Map<string, JobSample>;
}

/**
 * Turns the changes of many jobs into few events: the first change of a quiet endpoint goes out at once, what
 * follows together.
 */
export class JobChangeCollector {
  readonly #emit: (endpointId: string, changes: number, jobs: JobSample[]) => void;
  readonly #pending = new Map<string, EndpointChanges>();
  /** Endpoints that had an event in the current window. */
  readonly #recent = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(emit: (endpointId: string, changes: number, jobs: JobSample[]) => void) {
    this.#emit = emit;
  }

  add({ endpointId, id, status, workerId }: Pick<Job, 'endpointId' | 'id' | 'status' | 'workerId'>): void {
    const changes = this.#changesOf(endpointId);
    changes.changes += 1;
    changes.samples.delete(id);
    changes.samples.set(id, { id, status, workerId });
    if (changes.samples.size > MAX_SAMPLES) {
      const [oldest] = changes.samples.keys();
      changes.samples.delete(oldest as string);
    }
    this.#schedule(endpointId);
  }

  /** Something changed that is not known here. */
  touch(endpointId: string): void {
    this.#changesOf(endpointId);
    this.#schedule(endpointId);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#pending.clear();
  }

  #changesOf(endpointId: string): EndpointChanges {
    let changes = this.#pending.get(endpointId);
    if (changes === undefined) this.#pending.set(endpointId, (changes = { changes: 0, samples: new Map() }));
    return changes;
  }

  #schedule(endpointId: string): void {
    if (this.#recent.size < ENDPOINTS_PER_WINDOW && !this.#recent.has(endpointId))
      setImmediate(() => this.#flush(endpointId));
    this.#recent.add(endpointId);
    this.#startWindow();
  }

  #startWindow(): void {
    const milliseconds = WINDOW_MS * Math.max(1, this.#recent.size / ENDPOINTS_PER_WINDOW);
    this.#timer ??= setTimeout(() => this.#flushAll(), milliseconds).unref();
  }

  #flushAll(): void {
    this.#timer = undefined;
    this.#recent.clear();
    for (const endpointId of [...this.#pending.keys()]) {
      this.#flush(endpointId);
      this.#recent.add(endpointId);
    }
    if (this.#recent.size > 0) this.#startWindow();
  }

  #flush(endpointId: string): void {
    const changes = this.#pending.get(endpointId);
    if (changes === undefined) return;
    this.#pending.delete(endpointId);
    this.#emit(endpointId, changes.changes, [...changes.samples.values()]);
  }
}
