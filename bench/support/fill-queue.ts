import { newJob } from '../../packages/cloud/src/queue/job-submission.ts';
import { JobSequence } from '../../packages/cloud/src/domain/job-ids.ts';
import { openStore } from '../../packages/cloud/src/store/open-store.ts';
import { systemClock } from '../../packages/cloud/src/support/clock.ts';
import { Sealer } from '../../packages/cloud/src/support/crypto.ts';
import { loadMasterKey } from '../../packages/cloud/src/support/master-key.ts';
import type { BerthStorage } from './berth-process.ts';
import { JOB_BODY } from './job-body.ts';

const BATCH_SIZE = 2_000;

/**
 * Queues jobs through Berth's own store, while no server runs: the rows are those that
 * `/run` makes, at a multiple of its speed.
 */
export async function fillQueue(
  { data, database }: BerthStorage,
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
    const endpoint = await store.endpoints.findInAnyAccount(endpointId);
    if (endpoint === undefined) throw new Error(`there is no endpoint ${endpointId}`);
    const numbers = new JobSequence(systemClock);
    for (let queued = 0; queued < count; queued += BATCH_SIZE) {
      const some = Array.from({ length: Math.min(BATCH_SIZE, count - queued) }, () =>
        newJob(endpoint, endpoint.accountId, JOB_BODY, {}, numbers.next(), systemClock.now()),
      );
      await Promise.all(some.map((job) => store.jobs.submit(job)));
    }
  } finally {
    await store.close();
  }
}
