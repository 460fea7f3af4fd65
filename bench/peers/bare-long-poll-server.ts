import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LONG_POLL_MS } from '../../packages/cloud/src/http/workers/workers.routes.ts';

/**
 * The least that a server in Node can do with long polls: it holds each as long as Berth does and answers
 * nothing. It knows no worker and hands out no job.
 */
const server = createServer(
  (_request, response) => void setTimeout(() => response.writeHead(204).end(), LONG_POLL_MS),
);
server.keepAliveTimeout = 2 * LONG_POLL_MS;
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`held polls are up at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`),
);
process.once('SIGTERM', () => process.exit(0));
