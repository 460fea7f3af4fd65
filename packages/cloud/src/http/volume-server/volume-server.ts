import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { createServer } from '../../support/node-http.ts';
import { CAPACITY_HEADER, type ErrorAnswer } from '../../resources/volumes/remote/volume-protocol.ts';
import type { VolumeServerCalls } from '../../resources/volumes/remote/volume-server-calls.ts';
import { BerthError } from '../../support/errors.ts';
import { timingSafeEqualText } from '../../support/crypto.ts';
import { allowLongUpload } from '../long-uploads.ts';

const MAX_CALL_BYTES = 16 * 1024 ** 2;

export interface VolumeServerOptions {
  calls: VolumeServerCalls;
  token: string;
  /** Called after this time without a request. */
  idleMs: number;
  onIdle(): void;
}

/** Answers Berth servers about the files of one volume. */
export function createVolumeServer(options: VolumeServerOptions): Server {
  const startIdling = (): NodeJS.Timeout => setTimeout(() => options.onIdle(), options.idleMs);
  let idle = startIdling();
  let running = 0;
  const server = createServer((request, response) => {
    running += 1;
    clearTimeout(idle);
    response.once('close', () => {
      running -= 1;
      if (running === 0) idle = startIdling();
    });
    if (request.method !== 'GET') allowLongUpload(request.socket);
    answer(request, response, options).catch((error: unknown) => sendError(request, response, error));
  });
  server.once('close', () => clearTimeout(idle));
  return server;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { calls, token }: VolumeServerOptions,
): Promise<void> {
  if (!timingSafeEqualText(request.headers.authorization ?? '', `Bearer ${token}`))
    throw new BerthError('unauthenticated', 'this volume server is for Berth servers only');
  const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://volume');
  const capacity = Number(request.headers[CAPACITY_HEADER]);
  if (Number.isFinite(capacity)) calls.capacity = capacity;
  const length = Number(request.headers['content-length'] ?? 0);
  if (pathname === '/content') return sendContent(response, query, calls);
  if (pathname === '/arrive')
    return sendJson(response, await calls.arrive(request, length, Number(query.get('replaced'))));
  if (pathname === '/part')
    return sendJson(
      response,
      await calls.putPart(query.get('id') ?? '', query.get('key') ?? '', Number(query.get('number')), {
        bytes: request,
        length,
      }),
    );
  if (length > MAX_CALL_BYTES) throw new BerthError('too-large', 'this call is too long');
  const name = pathname.replace('/call/', '');
  sendJson(response, await calls.call(name, JSON.parse(await text(request)) as unknown));
}

async function sendContent(
  response: ServerResponse,
  query: URLSearchParams,
  calls: VolumeServerCalls,
): Promise<void> {
  const [from, to] = [Number(query.get('from')), Number(query.get('to'))];
  const object = await calls.open(query.get('key') ?? '', query.get('identity') ?? '');
  response.writeHead(200, { 'content-length': to - from + 1 });
  await pipeline(object.read(from, to), response).catch(() => response.destroy());
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(value ?? null));
}

function sendError(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.destroy();
  const { code, message } = error as NodeJS.ErrnoException;
  const body: ErrorAnswer =
    error instanceof BerthError
      ? { code: error.code, message }
      : { message, ...(code === undefined ? { code: 'internal' } : { errno: code }) };
  // What is left of the body is not read.
  if (!request.complete) response.shouldKeepAlive = false;
  response.statusCode = error instanceof BerthError && error.code === 'unauthenticated' ? 401 : 500;
  sendJson(response, body);
}
