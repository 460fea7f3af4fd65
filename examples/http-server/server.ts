import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { acceptWebSocket } from './web-socket.ts';

/**
 * A load balanced worker is any HTTP server that listens on the port in PORT and answers on
 * /ping as soon as it can take requests.
 */
const worker = process.env['RUNPOD_POD_ID'] ?? 'local';

const server: Server = createServer((request, response) => {
  const path = (request.url ?? '/').split('?')[0];
  if (path === '/ping') return void response.end('{"status":"healthy"}');
  if (path !== '/' && path !== '/echo')
    return void response.writeHead(404).end('{"error":"there is / and /echo, and /ws for a WebSocket"}');
  response.setHeader('content-type', 'application/json');
  if (path === '/')
    return void response.end(JSON.stringify({ worker, uptimeSeconds: Math.round(process.uptime()) }));
  request.pipe(response);
});

server.on('upgrade', (request, socket) => {
  if (!request.url?.startsWith('/ws')) return void socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
  acceptWebSocket(request, socket, (message) => `${worker}: ${message}`);
});

process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});

server.listen(Number(process.env['PORT'] ?? 8000), () =>
  process.stdout.write(`worker ${worker} listens on ${process.env['PORT'] ?? 8000}\n`),
);
