import { Worker } from 'bullmq';
import { bullmqConnection } from '../peers/bullmq-connection.ts';
import type { Session, WorkerOptions } from './session.ts';

export async function bullmqWorker({ at, queue, concurrency }: WorkerOptions): Promise<Session> {
  let done = 0;
  const connection = bullmqConnection(Number(at));
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
