import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { JobQueue } from '../../queue/job-queue.ts';
import type { Delivery, Job } from '../../domain/job-records.ts';
import { noopWakeupBus } from '../../store/wakeup-bus.ts';
import { createLog } from '../../support/log.ts';
import { waitingReason } from './waiting-reason.ts';
import { EventBus } from '../../support/event-bus.ts';

let context: ServiceContext;
let queue: JobQueue;
before(async () => {
  context = await createServiceContext();
  queue = new JobQueue({
    store: context.store.jobs,
    wakeups: noopWakeupBus,
    clock: context.clock,
    log: createLog({ level: 'silent', format: 'json' }),
    deliveryOf: (): Delivery => assert.fail(),
    events: new EventBus(),
  });
});
after(() => context.close());

const submit = (): Promise<Job> =>
  queue.submit({
    endpoint: {
      id: 'e',
      accountId: 'a',
      executionTimeout: 0,
      jobTtl: 86_400_000,
      retention: null,
      maxRetries: 1,
    },
    accountId: 'a',
    request: '{"input":1}',
    options: {},
  });

test('a waiting job has the reason why it waits', async () => {
  const [first, second, third] = [await submit(), await submit(), await submit()];
  const reason = (job: Job, fleet?: string): Promise<string> => waitingReason(queue, job, () => fleet);
  assert.equal(await reason(first), 'no worker is connected to this endpoint');
  assert.equal(await reason(first, 'the maximum is 0'), 'the maximum is 0');
  queue.heartbeats.unhealthy('e', 'sick', 'gpu: no device');
  assert.equal(await reason(first), 'no healthy worker is connected; the last one reported: gpu: no device');
  queue.heartbeats.recordHeartbeat('e', 'w1');
  assert.equal(
    await reason(first, 'the maximum is 0'),
    'next in line: 1 worker is idle and has not asked for a job yet',
  );
  queue.heartbeats.recordHeartbeat('e', 'w2');
  assert.deepEqual(
    [await reason(first), await reason(second), await reason(third)],
    [
      'next in line: 2 workers are idle and have not asked for a job yet',
      'held behind 1 job',
      'held behind 2 jobs',
    ],
  );
  queue.heartbeats.assignJobs('e', 'w1', { seq: 1, id: 'j1', lease: 'l1' });
  assert.equal(
    await reason(first),
    'next in line: 1 worker is busy, 1 worker is idle and has not asked for a job yet',
  );
  queue.heartbeats.assignJobs('e', 'w2', { seq: 2, id: 'j2', lease: 'l2' });
  assert.equal(await reason(first), 'next in line: 2 workers are busy');
});

test('a long queue is not counted to its end', async () => {
  queue.heartbeats.recordHeartbeat('e', 'w1');
  await Promise.all(Array.from({ length: 1_000 }, submit));
  assert.equal(
    await waitingReason(queue, await submit(), () => undefined),
    'held behind more than 1000 jobs',
  );
});
