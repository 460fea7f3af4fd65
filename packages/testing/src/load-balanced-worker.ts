import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { acceptWebSocket } from '../../../examples/http-server/web-socket.ts';

/**
 * A load balanced worker with a path for everything that a request may meet. It is uploaded together with the
 * WebSocket of an example.
 */
const worker = process.env['RUNPOD_POD_ID'] ?? 'local';
/** How many health checks are answered with 204 first. */
const startingPings = Number(process.env['STARTING_PINGS'] ?? 0);
const pings: number[] = [];
/** Responses that wait for a command, by name. */
const open = new Map<string, ServerResponse>();
/** Those whose client went away first. */
const abandoned: string[] = [];
/** Bodies that are not read before `read` is called, by name. */
const unread = new Map<string, IncomingMessage>();

const PATHS: Record<string, (request: IncomingMessage, response: ServerResponse, name: string) => void> = {
  ping: (_request, response) => {
    const status = pings.length < startingPings ? 204 : 200;
    pings.push(status);
    response.writeHead(status).end();
  },
  about: (_request, response) =>
    void response.end(
      JSON.stringify({ worker, pings, open: [...open.keys()], abandoned, unread: [...unread.keys()] }),
    ),
  back: (request, response) => void request.pipe(response),
  /** Events, or anything else that comes bit by bit. */
  open: (_request, response, name) => {
    open.set(name, response);
    response.on('close', () => {
      open.delete(name);
      if (!response.writableFinished) abandoned.push(name);
    });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
  },
  tell: (request, response, name) => {
    void bodyOf(request).then((body) => {
      if (body.length > 0) open.get(name)?.write(body);
      else open.get(name)?.end();
      response.end();
    });
  },
  /** Takes a body and reads nothing of it until `read` says so; then answers how long it was. */
  keep: (request, response, name) => {
    unread.set(name, request);
    let size = 0;
    request.on('end', () => response.end(String(size)));
    request.on('data', (chunk: Buffer) => (size += chunk.length));
    request.pause();
  },
  read: (_request, response) => {
    for (const request of unread.values()) request.resume();
    response.end(String(unread.size));
  },
  /** So many bytes, with or without saying so before. */
  bytes: (request, response, size) =>
    void sendBytes(response, Number(size), request.headers['x-tell-length'] !== undefined),
  die: (_request, response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('half of', () => process.exit(1));
  },
};

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function sendBytes(response: ServerResponse, size: number, withLength: boolean): Promise<void> {
  if (withLength) response.setHeader('content-length', size);
  const piece = Buffer.alloc(64 * 1024, 'x');
  for (let left = size; left > 0 && !response.destroyed; left -= piece.length) {
    if (!response.write(left < piece.length ? piece.subarray(0, left) : piece))
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}

const server = createServer((request, response) => {
  const [path = '', name = ''] = (request.url ?? '/').slice(1).split('?')[0]?.split('/') ?? [];
  const known = PATHS[path];
  if (known !== undefined) return known(request, response, name);
  void bodyOf(request).then((body) => {
    response.writeHead(path === 'teapot' ? 418 : 200, {
      'content-type': 'application/json',
      'x-seen-method': request.method,
    });
    response.end(
      request.method === 'HEAD'
        ? undefined
        : JSON.stringify({
            worker,
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: body.toString(),
          }),
    );
  });
});
server.on('upgrade', (request, socket) =>
  acceptWebSocket(request, socket, (message) => `${worker} ${request.url}: ${message}`),
);
server.requestTimeout = 0;
server.listen(Number(process.env['PORT']));
process.on('SIGTERM', () => process.exit(0));
