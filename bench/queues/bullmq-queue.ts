import { cpSync } from 'node:fs';
import { Queue } from 'bullmq';
import { bullmqConnection } from '../peers/bullmq-connection.ts';
import { startRedis } from '../support/bench-redis.ts';
import { withCleanup } from '../support/cleanup-scope.ts';
import type { CleanupScope } from '../support/cleanup-scope.ts';
import { CONCURRENCY } from './filled-queue.ts';
import type { FilledQueue } from './filled-queue.ts';

const BATCH_SIZE = 1_000;
const NAME = 'bench';

/** BullMQ with its default options: a job that has ended stays, as it does in Berth. */
export async function filledBullmq(scope: CleanupScope, jobs: number): Promise<FilledQueue> {
  const folder = scope.folder('redis');
  await withCleanup(async (filling) => {
    const { port } = await startRedis(filling, folder);
    const connection = bullmqConnection(port);
    const queue = new Queue(NAME, { connection });
    filling.defer(async () => {
      await queue.close();
      // A connection that was given to it is not its own to end.
      connection.disconnect();
    });
    for (let queued = 0; queued < jobs; queued += BATCH_SIZE) {
      await queue.addBulk(
        Array.from({ length: Math.min(BATCH_SIZE, jobs - queued) }, () => ({
          name: 'run',
          data: { input: { prompt: 'hello' } },
        })),
      );
    }
  });
  return {
    name: 'BullMQ, Redis',
    open: async (run) => {
      const copy = run.folder('redis');
      cpSync(folder, copy, { recursive: true });
      const { port } = await startRedis(run, copy);
      return { role: 'bullmq', target: String(port), queue: NAME, concurrency: CONCURRENCY };
    },
  };
}
