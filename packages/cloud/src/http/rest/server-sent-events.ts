import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

export interface ServerSentEvent {
  id: string;
  data: unknown;
}

/** Readers give up after a minute of silence. */
const HEARTBEAT_MS = 15_000;
/**
 * Events that come together go out together, up to about this many characters: one by one they would cost
 * more than they are.
 */
const MAX_BATCH_CHARS = 64 * 1024;

/**
 * Sends events as they come, at the reader's pace, with a comment now and then so that the line does not go
 * dead.
 */
export async function sendServerSentEvents(
  reply: FastifyReply,
  events: AsyncIterable<ServerSentEvent>,
): Promise<FastifyReply> {
  const response = reply.raw;
  reply.hijack();
  response.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    connection: 'keep-alive',
    'x-accel-buffering': 'no',
  });
  response.write(': connected\n\n');
  const heartbeat = setInterval(() => response.write(': ping\n\n'), HEARTBEAT_MS);
  let gathered = '';
  let flushing: NodeJS.Immediate | undefined;
  const flush = (): void => {
    clearImmediate(flushing);
    flushing = undefined;
    if (gathered !== '' && !response.destroyed) response.write(gathered);
    gathered = '';
  };
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    for await (const { id, data } of events) {
      if (response.destroyed) break;
      gathered += `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
      if (gathered.length >= MAX_BATCH_CHARS) flush();
      else flushing ??= setImmediate(flush);
      if (response.writableNeedDrain)
        await once(response, 'drain', { signal: gone.signal }).catch(() => undefined);
    }
  } finally {
    clearInterval(heartbeat);
    flush();
    response.end();
  }
  return reply;
}
