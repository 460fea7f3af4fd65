import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CloudEvents } from '../../domain/events.ts';
import type { Job, JobStatus } from '../../domain/job-records.ts';
import { EventBus } from '../../support/event-bus.ts';
import { EndpointJobMetrics, MAX_LABELLED_ENDPOINTS } from './endpoint-job-metrics.ts';

const events = new EventBus<CloudEvents>();
const metrics = new EndpointJobMetrics(events);

function change(endpointId: string, status: JobStatus, from?: JobStatus): void {
  const job = { endpointId, status, queuedAt: 1_000, takenAt: 1_200, endedAt: 3_200 } as Job;
  events.publish('job.changed', { job, from });
}

function values(name: string): Map<string, number> {
  const family = metrics.families().find((one) => one.name === name);
  return new Map(
    family?.values
      .filter(
        ({ metricName, labels }) =>
          metricName === undefined || metricName.endsWith('_count') || labels['le'] === '+Inf',
      )
      .map(({ labels, value }) => [String(labels['endpoint']), value]),
  );
}

test('of 2,000 endpoints the 50 busiest have a label, and no counter ever goes back', () => {
  for (let number = 0; number < 2_000; number += 1)
    for (let times = 0; times <= (number < 60 ? 60 - number : 0); times += 1)
      change(`e${number}`, 'IN_QUEUE');
  const first = values('berth_jobs_submitted_total');
  assert.equal(first.size, MAX_LABELLED_ENDPOINTS + 1);
  assert.equal(first.get('e0'), 61);
  assert.equal(first.has('e55'), false);
  const sum = (all: Map<string, number>): number => [...all.values()].reduce((one, two) => one + two, 0);
  const submitted = 2_000 + (60 * 61) / 2;
  assert.equal(sum(first), submitted);

  events.publish('endpoint.removed', { endpointId: 'e0', accountId: 'a', source: 'request' });
  for (let times = 0; times < 100; times += 1) change('e1999', 'IN_QUEUE');
  const second = values('berth_jobs_submitted_total');
  assert.ok((second.get('other') ?? 0) >= (first.get('other') ?? 0), 'other does not go back');
  assert.equal(second.get('e1999'), 0, 'what was shown as other stays there');
  change('e1999', 'IN_QUEUE');
  assert.equal(values('berth_jobs_submitted_total').get('e1999'), 1);
});

test('waiting and running times and outcomes are counted', () => {
  change('e1', 'IN_PROGRESS', 'IN_QUEUE');
  change('e1', 'COMPLETED', 'IN_PROGRESS');
  assert.equal(values('berth_job_wait_seconds').get('e1'), 1);
  assert.equal(values('berth_job_run_seconds').get('e1'), 1);
  const ended = metrics.families().find(({ name }) => name === 'berth_jobs_ended_total');
  assert.equal(
    ended?.values.find(({ labels }) => labels['endpoint'] === 'e1' && labels['status'] === 'COMPLETED')
      ?.value,
    1,
  );
});
