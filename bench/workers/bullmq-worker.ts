import { Worker } from 'bullmq';
import { bullmqConnection } from '../peers/bullmq-connection.ts';
import type { BenchWorker, WorkerOptions } from './worker-messages.ts';

export async function bullmqWorker({ target, queue, concurrency }: WorkerOptions): Promise<BenchWorker> {
  let done = 0;
  const connection = bullmqConnection(Number(target));
  const worker = new Worker(queue, async () => ({ ok: true }), { connection, concurrency, autorun: false });
  worker.on('completed', () => void (done += 1));
  let stopping = false;
  worker.on('error', (error) => {
    if (!stopping) throw error;
  });
  await worker.waitUntilReady();
  return {
    get done() {
      return done;
    },
    start: () => {
      worker.run().catch((error: unknown) => {
        if (!stopping) throw error;
      });
    },
    stop: async () => {
      stopping = true;
      await worker.close(true);
      connection.disconnect();
    },
  };
}
