import { Queue } from 'bullmq';
import Fastify from 'fastify';
import { bullmqConnection } from './bullmq-connection.ts';

/** What a team writes in an afternoon: one route that adds to a BullMQ queue and answers the id. */
const queue = new Queue('bench', { connection: bullmqConnection(Number(process.argv[2])) });
await queue.waitUntilReady();
const app = Fastify();
app.post('/run', async (request) => {
  const job = await queue.add('run', request.body);
  return { id: job.id, status: 'IN_QUEUE' };
});
const url = await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`fastify with bullmq is up at ${url}\n`);
process.once('SIGTERM', () => process.exit(0));
