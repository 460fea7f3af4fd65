import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The least that an HTTP server in Node can do: reads a body and answers JSON of the size that `/run`
 * answers.
 */
const ANSWER = JSON.stringify({ id: '00000000-0000-8000-8000-000000000000-u1', status: 'IN_QUEUE' });

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (Buffer.concat(chunks).toString() === '') response.writeHead(400);
    else
      response.writeHead(200, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': ANSWER.length,
      });
    response.end(ANSWER);
  });
});
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`echo is up at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`),
);
process.once('SIGTERM', () => process.exit(0));
