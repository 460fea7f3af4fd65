import type { CloudEventBus } from '../../domain/events.ts';
import { TERMINAL_STATUSES } from '../../domain/job-records.ts';
import type { Job, JobStatus, TerminalStatus } from '../../domain/job-records.ts';

/** So many endpoints have a label of their own; the others are summed up as `other`. */
export const MAX_LABELLED_ENDPOINTS = 50;
/** Beyond this many, new endpoints are counted as `other` at once. */
const MAX_TRACKED_ENDPOINTS = 20_000;
const BOUNDS_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800] as const;

/** The counts of one endpoint: plain numbers, since every job adds to them. */
class JobStats {
  readonly wait = new Durations();
  readonly run = new Durations();
  readonly ended: Record<TerminalStatus, number> = { COMPLETED: 0, FAILED: 0, CANCELLED: 0, TIMED_OUT: 0 };
  submitted = 0;
  retries = 0;
  /** They were part of `other` in an answer to Prometheus. */
  wasShownAsOther = false;

  add(from: JobStats): void {
    this.wait.add(from.wait);
    this.run.add(from.run);
    for (const status of TERMINAL_STATUSES) this.ended[status] += from.ended[status];
    this.submitted += from.submitted;
    this.retries += from.retries;
  }
}

class Durations {
  readonly counts: number[] = Array.from({ length: BOUNDS_SECONDS.length + 1 }, () => 0);
  sum = 0;

  observe(seconds: number): void {
    let index = 0;
    while (index < BOUNDS_SECONDS.length && seconds > (BOUNDS_SECONDS[index] as number)) index += 1;
    (this.counts[index] as number) += 1;
    this.sum += seconds;
  }

  add({ counts, sum }: Durations): void {
    counts.forEach((count, index) => ((this.counts[index] as number) += count));
    this.sum += sum;
  }
}

export interface MetricValue {
  metricName?: string;
  labels: Record<string, string | number>;
  value: number;
}

/** One family as Prometheus reads it. */
export interface MetricFamily {
  name: string;
  help: string;
  type: 'counter' | 'histogram';
  values: MetricValue[];
}

/**
 * Counts what the jobs of each endpoint do on this server. The label sets are bounded: the busiest endpoints get a label when
 * Prometheus asks, as long as there is room, and keep it. What an endpoint did before it got its label stays with `other`, if it was
 * shown there: a counter never goes back.
 */
export class EndpointJobMetrics {
  readonly #labelled = new Map<string, JobStats>();
  readonly #others = new Map<string, JobStats>();
  /** What is not of one endpoint any more. */
  readonly #rest = new JobStats();

  constructor(events: CloudEventBus) {
    events.subscribe('job.changed', ({ job, from }) => this.#count(job, from));
    events.subscribe('endpoint.removed', ({ endpointId }) => this.#remove(endpointId));
  }

  #count(job: Job, from: JobStatus | undefined): void {
    const stats = this.#statsOf(job.endpointId);
    const { status, queuedAt, takenAt, endedAt } = job;
    if (from === undefined) stats.submitted += 1;
    else if (status === 'IN_PROGRESS')
      stats.wait.observe(Math.max(0, (takenAt ?? queuedAt) - queuedAt) / 1000);
    else if (status === 'IN_QUEUE') stats.retries += 1;
    else {
      stats.ended[status] += 1;
      if (takenAt !== null && endedAt !== null) stats.run.observe(Math.max(0, endedAt - takenAt) / 1000);
    }
  }

  #statsOf(endpointId: string): JobStats {
    const known = this.#labelled.get(endpointId) ?? this.#others.get(endpointId);
    if (known !== undefined) return known;
    if (this.#others.size >= MAX_TRACKED_ENDPOINTS) return this.#rest;
    const stats = new JobStats();
    this.#others.set(endpointId, stats);
    return stats;
  }

  #remove(endpointId: string): void {
    const other = this.#others.get(endpointId);
    if (other !== undefined) this.#rest.add(other);
    this.#others.delete(endpointId);
    this.#labelled.delete(endpointId);
  }

  /** Gives the busiest of the others a label, as long as there is room. */
  #promote(): void {
    const room = MAX_LABELLED_ENDPOINTS - this.#labelled.size;
    if (room <= 0) return;
    const busiest = [...this.#others]
      .sort(([, one], [, two]) => two.submitted - one.submitted)
      .slice(0, room);
    for (const [endpointId, stats] of busiest) {
      this.#others.delete(endpointId);
      if (stats.wasShownAsOther) this.#rest.add(stats);
      this.#labelled.set(endpointId, stats.wasShownAsOther ? new JobStats() : stats);
    }
  }

  /** The label of each endpoint: its own id or `other`. */
  labelOf(endpointId: string): string {
    return this.#labelled.has(endpointId) ? endpointId : 'other';
  }

  families(): MetricFamily[] {
    this.#promote();
    const other = new JobStats();
    other.add(this.#rest);
    for (const stats of this.#others.values()) {
      other.add(stats);
      stats.wasShownAsOther = true;
    }
    const all: [string, JobStats][] = [...this.#labelled, ['other', other]];
    const counter = (name: string, help: string, valueOf: (stats: JobStats) => number): MetricFamily => ({
      name,
      help,
      type: 'counter',
      values: all.map(([endpoint, stats]) => ({ labels: { endpoint }, value: valueOf(stats) })),
    });
    return [
      counter('berth_jobs_submitted_total', 'Jobs that were accepted', ({ submitted }) => submitted),
      counter(
        'berth_job_retries_total',
        'Jobs that went back to the queue: their worker was lost, or somebody retried them',
        ({ retries }) => retries,
      ),
      {
        name: 'berth_jobs_ended_total',
        help: 'Jobs that ended, by status',
        type: 'counter',
        values: all.flatMap(([endpoint, { ended }]) =>
          TERMINAL_STATUSES.map((status) => ({ labels: { endpoint, status }, value: ended[status] })),
        ),
      },
      histogram('berth_job_wait_seconds', 'Time that jobs waited in the queue', all, ({ wait }) => wait),
      histogram('berth_job_run_seconds', 'Time that jobs ran', all, ({ run }) => run),
    ];
  }
}

function histogram(
  name: string,
  help: string,
  all: readonly (readonly [string, JobStats])[],
  durationsOf: (stats: JobStats) => Durations,
): MetricFamily {
  const values = all.flatMap(([endpoint, stats]) => {
    const { counts, sum } = durationsOf(stats);
    let count = 0;
    const buckets = counts.map((inBucket, index): MetricValue => {
      count += inBucket;
      const le = BOUNDS_SECONDS[index] ?? '+Inf';
      return { metricName: `${name}_bucket`, labels: { le, endpoint }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: { endpoint }, value: sum },
      { metricName: `${name}_count`, labels: { endpoint }, value: count },
    ];
  });
  return { name, help, type: 'histogram', values };
}
