import { InvariantViolation } from './job-model.ts';
import type { ModelJob } from './job-model.ts';
import type { ReceivedWebhook } from './simulated-receiver.ts';
import type { StoredDelivery } from './simulation-storage.ts';

export const WEBHOOK_ATTEMPTS = 3;

/**
 * At the end: there is one delivery for each end of a job that wants webhooks, each is over, and what it says
 * of itself is what its receiver saw. Without faults nothing is sent twice.
 */
export function checkWebhooks(
  deliveries: readonly StoredDelivery[],
  received: readonly ReceivedWebhook[],
  jobs: Iterable<ModelJob>,
  hadFaults: boolean,
): void {
  const byJob = Map.groupBy(deliveries, ({ jobId }) => jobId);
  const jobsById = new Map([...jobs].map((job) => [job.id, job]));
  for (const { id, hasWebhook, endings, mayHavePurgedEnd } of jobsById.values()) {
    const found = byJob.get(id)?.length ?? 0;
    if (hasWebhook && found !== endings && !(mayHavePurgedEnd && found === endings - 1))
      throw new InvariantViolation(id, `a job ended ${endings} times and has ${found} webhooks`);
  }
  const byDelivery = Map.groupBy(received, ({ deliveryId }) => deliveryId);
  for (const { id, jobId, state, attempts } of deliveries) {
    const requests = byDelivery.get(id) ?? [];
    const fail = (message: string): never => {
      throw new InvariantViolation(jobId, message);
    };
    if (state === 'pending') fail(`the webhook ${id} still waits, long after the last fault`);
    if (state === 'delivered' && !requests.some(({ status }) => status === 200))
      fail(`the webhook ${id} counts as delivered, and was not accepted`);
    if (state === 'failed' && attempts < WEBHOOK_ATTEMPTS)
      fail(`the webhook ${id} was given up after ${attempts} attempts`);
    for (const { body } of requests) checkBody(body, jobsById.get(jobId), fail);
    const numbers = requests.map(({ attempt }) => attempt);
    if (!hadFaults && new Set(numbers).size < numbers.length)
      fail(`the webhook ${id} was sent twice as the same attempt, without a fault`);
    if (!hadFaults && requests.slice(0, -1).some(({ status }) => status === 200))
      fail(`the webhook ${id} was sent again after it was accepted, without a fault`);
  }
}

function checkBody(body: string, job: ModelJob | undefined, fail: (message: string) => never): void {
  const { id, status } = JSON.parse(body) as { id: string; status: string };
  if (job === undefined || id !== job.id) fail(`a webhook names the job ${id}`);
  else if (!job.ends.includes(status))
    fail(`a webhook says ${status} of a job that ended as ${job.ends.join(', ')}`);
}
