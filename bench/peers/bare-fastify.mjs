// The least that a Fastify server can be. Plain JavaScript, so that its start is not charged for removing
// types.
import Fastify from 'fastify';

const app = Fastify();
app.get('/healthz', async () => ({ status: 'ok' }));
const url = await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`fastify is up at ${url}\n`);
process.once('SIGTERM', () => process.exit(0));
