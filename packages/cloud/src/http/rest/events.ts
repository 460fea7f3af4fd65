import type { FastifyReply } from 'fastify';

export interface ServerEvent {
  id: string;
  data: unknown;
}

/** Readers give up after a minute of silence. */
const HEARTBEAT_MS = 15_000;

/** Sends events as they come, at the reader's pace, with a comment now and then so that the line does not go dead. */
export async function sendEvents(reply: FastifyReply, events: AsyncIterable<ServerEvent>): Promise<FastifyReply> {
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
  try {
    for await (const { id, data } of events) {
      if (response.destroyed) break;
      if (!response.write(`id: ${id}\ndata: ${JSON.stringify(data)}\n\n`)) {
        await new Promise<void>((resolve) => response.once('drain', resolve).once('close', resolve));
      }
    }
  } finally {
    clearInterval(heartbeat);
    response.end();
  }
  return reply;
}
