import { cpSync } from 'node:fs';
import { Queue } from 'bullmq';
import { bullmqConnection } from '../peers/bullmq-connection.ts';
import { startRedis } from '../support/redis.ts';
import { onStage } from '../support/stage.ts';
import type { Stage } from '../support/stage.ts';
import { CONCURRENCY } from './queue.ts';
import type { FilledQueue } from './queue.ts';

const TOGETHER = 1_000;
const NAME = 'bench';

/** BullMQ with its default options: a job that has ended stays, as it does in Berth. */
export async function filledBullmq(stage: Stage, jobs: number): Promise<FilledQueue> {
  const folder = stage.folder('redis');
  await onStage(async (filling) => {
    const { port } = await startRedis(filling, folder);
    const connection = bullmqConnection(port);
    const queue = new Queue(NAME, { connection });
    filling.onEnd(async () => {
      await queue.close();
      // A connection that was given to it is not its own to end.
      connection.disconnect();
    });
    for (let queued = 0; queued < jobs; queued += TOGETHER) {
      await queue.addBulk(
        Array.from({ length: Math.min(TOGETHER, jobs - queued) }, () => ({
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
      return { role: 'bullmq', at: String(port), queue: NAME, concurrency: CONCURRENCY };
    },
  };
}
