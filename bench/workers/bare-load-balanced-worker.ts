import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A load balanced worker that does as little as a server in Node can: what is measured is the way to it. */
const ANSWER = JSON.stringify({ id: '00000000-0000-8000-8000-000000000000-u1', status: 'COMPLETED' });

const server = createServer((request, response) => {
  const [path = '/', query = ''] = (request.url ?? '/').split('?');
  if (path === '/ping') return void response.end();
  if (path === '/port') return void response.end(String((server.address() as AddressInfo).port));
  if (path === '/events') return void sendEvents(response, Number(query));
  if (path === '/back') return void request.pipe(response);
  request.resume();
  request.on('end', () => {
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': ANSWER.length,
    });
    response.end(ANSWER);
  });
});

/** Each event is a chunk of its own, written when the last one has left if the other side is slow. */
async function sendEvents(response: ServerResponse, count: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let number = 0; number < count; number += 1) {
    if (!response.write(`id: ${number}\ndata: {"token":"word ${number}"}\n\n`)) await once(response, 'drain');
  }
  response.end();
}

server.keepAliveTimeout = 60_000;
server.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1');
process.once('SIGTERM', () => process.exit(0));
