import { newJob } from '../../packages/cloud/src/jobs/submission.ts';
import { JobNumbers } from '../../packages/cloud/src/jobs/identity.ts';
import { openStore } from '../../packages/cloud/src/store/open.ts';
import { systemClock } from '../../packages/cloud/src/support/clock.ts';
import { Sealer } from '../../packages/cloud/src/support/crypto.ts';
import { loadMasterKey } from '../../packages/cloud/src/support/master-key.ts';
import type { BerthPlace } from './berth.ts';
import { JOB_BODY } from './job-body.ts';

const TOGETHER = 2_000;

/**
 * Queues jobs through Berth's own store, while no server runs: the rows are those that
 * `/run` makes, at a multiple of its speed.
 */
export async function fillQueue(
  { data, database }: BerthPlace,
  endpointId: string,
  count: number,
): Promise<void> {
  const store = await openStore({
    database,
    data,
    poolSize: 2,
    sealer: new Sealer(loadMasterKey(data, undefined, undefined)),
    onError: (error) => {
      throw error;
    },
  });
  try {
    const endpoint = await store.endpoints.findAnywhere(endpointId);
    if (endpoint === undefined) throw new Error(`there is no endpoint ${endpointId}`);
    const numbers = new JobNumbers(systemClock);
    for (let queued = 0; queued < count; queued += TOGETHER) {
      const some = Array.from({ length: Math.min(TOGETHER, count - queued) }, () =>
        newJob(endpoint, endpoint.accountId, JOB_BODY, {}, numbers.next(), systemClock.now()),
      );
      await Promise.all(some.map((job) => store.jobs.submit(job)));
    }
  } finally {
    await store.close();
  }
}
