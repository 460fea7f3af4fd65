import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** An upload on which nothing has moved for this long has ended. */
const STALL_TIMEOUT_MS = 300_000;

const uploads = new WeakSet<Duplex>();

/**
 * Node ends a connection whose request has not come whole within a time. That is right for what is
 * small, and wrong for a file: there it counts that it goes on, not how long it takes.
 */
export function allowLongUpload(socket: Socket, stalledMs = STALL_TIMEOUT_MS): void {
  uploads.add(socket);
  socket.setTimeout(stalledMs);
}

/** For the event `clientError`: what cannot be read as a request, or did not come in time. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && uploads.has(socket)) return;
  const status =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
  if (socket.writable) {
    const body = JSON.stringify({ title: STATUS_CODES[status], status, detail: error.message });
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nContent-Type: application/problem+json\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroy(error);
}
