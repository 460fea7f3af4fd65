import type { CloudEventBus, CloudEvents } from '../../domain/events.ts';
import { TERMINAL_STATUSES } from '../../domain/job-records.ts';
import type { TerminalStatus } from '../../domain/job-records.ts';
import { EndpointLabels } from './endpoint-labels.ts';

const BOUNDS_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800] as const;

/** The counts of one endpoint: plain numbers, since every job adds to them. */
class JobStats {
  readonly wait = new Durations();
  readonly run = new Durations();
  readonly ended: Record<TerminalStatus, number> = { COMPLETED: 0, FAILED: 0, CANCELLED: 0, TIMED_OUT: 0 };
  submitted = 0;
  retries = 0;
  leasesLost = 0;
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
}

export interface MetricValue {
  metricName?: string;
  labels: Record<string, string | number>;
  value: number;
}

/** One family; its values are computed when Prometheus asks. */
export interface MetricFamily {
  name: string;
  help: string;
  type: 'counter' | 'histogram';
  values(): MetricValue[];
}

/** Counts what the jobs of each endpoint do on this server, under a bounded number of labels. */
export class EndpointJobMetrics {
  readonly labels: EndpointLabels<JobStats>;
  readonly families: readonly MetricFamily[];

  constructor(events: CloudEventBus, now: () => number = () => performance.now()) {
    this.labels = new EndpointLabels(() => new JobStats(), now);
    events.subscribe('job.changed', (change) => this.#count(change));
    events.subscribe('endpoint.removed', ({ endpointId }) => this.labels.remove(endpointId));
    this.families = [
      this.#counter('berth_jobs_submitted_total', 'Jobs that were accepted', ({ submitted }) => submitted),
      this.#counter(
        'berth_job_retries_total',
        'Jobs that went back to the queue: their worker was lost, or somebody retried them',
        ({ retries }) => retries,
      ),
      this.#counter(
        'berth_leases_lost_total',
        'Attempts whose worker was lost, whether they were retried or not',
        ({ leasesLost }) => leasesLost,
      ),
      {
        name: 'berth_jobs_ended_total',
        help: 'Jobs that ended, by status',
        type: 'counter',
        values: () =>
          [...this.labels.series()].flatMap(([endpoint, { ended }]) =>
            TERMINAL_STATUSES.map((status) => ({ labels: { endpoint, status }, value: ended[status] })),
          ),
      },
      this.#histogram('berth_job_wait_seconds', 'Time that jobs waited in the queue', ({ wait }) => wait),
      this.#histogram('berth_job_run_seconds', 'Time that jobs ran', ({ run }) => run),
    ];
  }

  #count({ job, from, leaseLost }: CloudEvents['job.changed']): void {
    const stats = this.labels.active(job.endpointId);
    const { status, queuedAt, takenAt, endedAt } = job;
    if (leaseLost === true) stats.leasesLost += 1;
    if (from === undefined) stats.submitted += 1;
    else if (status === 'IN_PROGRESS')
      stats.wait.observe(Math.max(0, (takenAt ?? queuedAt) - queuedAt) / 1000);
    else if (status === 'IN_QUEUE') {
      // A job that never reached its worker is returned as if never taken.
      if (from !== 'IN_PROGRESS' || leaseLost === true) stats.retries += 1;
    } else {
      stats.ended[status] += 1;
      if (takenAt !== null && endedAt !== null) stats.run.observe(Math.max(0, endedAt - takenAt) / 1000);
    }
  }

  #counter(name: string, help: string, valueOf: (stats: JobStats) => number): MetricFamily {
    return {
      name,
      help,
      type: 'counter',
      values: () =>
        [...this.labels.series()].map(([endpoint, stats]) => ({
          labels: { endpoint },
          value: valueOf(stats),
        })),
    };
  }

  #histogram(name: string, help: string, durationsOf: (stats: JobStats) => Durations): MetricFamily {
    return {
      name,
      help,
      type: 'histogram',
      values: () =>
        [...this.labels.series()].flatMap(([endpoint, stats]) =>
          histogramValues(name, endpoint, durationsOf(stats)),
        ),
    };
  }
}

function histogramValues(name: string, endpoint: string, { counts, sum }: Durations): MetricValue[] {
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
}
