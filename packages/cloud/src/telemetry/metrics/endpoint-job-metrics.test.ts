import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CloudEvents } from '../../domain/events.ts';
import type { Job, JobStatus } from '../../domain/job-records.ts';
import { EventBus } from '../../support/event-bus.ts';
import { EndpointJobMetrics } from './endpoint-job-metrics.ts';
import { MAX_LABELLED_ENDPOINTS } from './endpoint-labels.ts';

const MINUTE_MS = 60_000;

function createMetrics() {
  const events = new EventBus<CloudEvents>();
  let now = 0;
  const metrics = new EndpointJobMetrics(events, () => now);
  return {
    events,
    metrics,
    pass: (milliseconds: number) => (now += milliseconds),
    change: (endpointId: string, status: JobStatus, from?: JobStatus, leaseLost?: true): void => {
      const job = { endpointId, status, queuedAt: 1_000, takenAt: 1_200, endedAt: 3_200 } as Job;
      events.publish('job.changed', { job, from, ...(leaseLost && { leaseLost }) });
    },
    /** By endpoint; of a histogram, the counts. */
    values: (name: string): Map<string, number> =>
      new Map(
        metrics.families
          .find((one) => one.name === name)
          ?.values()
          .filter(({ metricName }) => metricName === undefined || metricName.endsWith('_count'))
          .map(({ labels, value }) => [String(labels['endpoint']), value]),
      ),
  };
}

test('of 2,000 endpoints the 50 busiest have a label, whenever they come, and no counter goes back', () => {
  const { change, pass, values } = createMetrics();
  const name = 'berth_jobs_submitted_total';
  const shown = new Map<string, number>();
  let submitted = 0;
  const submit = (endpoint: number, times: number): void => {
    for (let n = 0; n < times; n += 1) change(`e${endpoint}`, 'IN_QUEUE');
    submitted += times;
  };
  const scrape = (): Map<string, number> => {
    const found = values(name);
    assert.ok(found.size <= MAX_LABELLED_ENDPOINTS + 1, `${found.size} series`);
    for (const [label, value] of found) {
      assert.ok(value >= (shown.get(label) ?? 0), `${label} went from ${shown.get(label)} to ${value}`);
      shown.set(label, value);
    }
    return found;
  };
  for (let endpoint = 0; endpoint < 2_000; endpoint += 1) submit(endpoint, 1);
  scrape();
  // The first ones fall silent, and others become busy.
  for (let minute = 0; minute < 30; minute += 1) {
    for (let endpoint = 1_000; endpoint < 1_050; endpoint += 1) submit(endpoint, 5);
    pass(MINUTE_MS);
    scrape();
  }
  const busy = scrape();
  for (let endpoint = 1_000; endpoint < 1_050; endpoint += 1) assert.ok(busy.has(`e${endpoint}`));
  assert.equal(busy.has('e0'), false);
  // The first ones come back: their series continue from where they ended.
  for (let minute = 0; minute < 90; minute += 1) {
    for (let endpoint = 0; endpoint < 50; endpoint += 1) submit(endpoint, 5);
    pass(MINUTE_MS);
    scrape();
  }
  assert.ok(scrape().has('e0'));
  // Every job is counted once, in whichever series it was at its time.
  assert.equal(
    [...shown.values()].reduce((one, two) => one + two, 0),
    submitted,
  );
});

test('an endpoint that is deleted gives its label to another', () => {
  const { change, events, values, metrics } = createMetrics();
  for (let endpoint = 0; endpoint <= MAX_LABELLED_ENDPOINTS; endpoint += 1)
    change(`e${endpoint}`, 'IN_QUEUE');
  assert.equal(metrics.labels.labelOf('e50'), 'other');
  events.publish('endpoint.removed', { endpointId: 'e0', accountId: 'a', source: 'request' });
  assert.equal(metrics.labels.labelOf('e50'), 'e50');
  change('e50', 'IN_QUEUE');
  assert.deepEqual(
    [
      values('berth_jobs_submitted_total').get('e50'),
      values('berth_jobs_submitted_total').get('other'),
      values('berth_jobs_submitted_total').has('e0'),
    ],
    [1, 1, false],
  );
});

test('waiting and running times, outcomes, retries and lost leases are counted', () => {
  const { change, values, metrics } = createMetrics();
  change('e1', 'IN_PROGRESS', 'IN_QUEUE');
  change('e1', 'COMPLETED', 'IN_PROGRESS');
  assert.equal(values('berth_job_wait_seconds').get('e1'), 1);
  assert.equal(values('berth_job_run_seconds').get('e1'), 1);
  const ended = metrics.families.find(({ name }) => name === 'berth_jobs_ended_total');
  assert.equal(
    ended?.values().find(({ labels }) => labels['endpoint'] === 'e1' && labels['status'] === 'COMPLETED')
      ?.value,
    1,
  );
  change('e1', 'IN_QUEUE', 'IN_PROGRESS');
  assert.equal(values('berth_job_retries_total').get('e1'), 0, 'it never reached its worker');
  change('e1', 'IN_QUEUE', 'IN_PROGRESS', true);
  change('e1', 'IN_QUEUE', 'FAILED');
  change('e1', 'FAILED', 'IN_PROGRESS', true);
  assert.equal(values('berth_job_retries_total').get('e1'), 2);
  assert.equal(values('berth_leases_lost_total').get('e1'), 2);
});
