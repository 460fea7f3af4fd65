import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { STATUS_CODES } from '../support/node-http.ts';

/** An upload without progress for this long is ended. */
const STALL_TIMEOUT_MS = 300_000;

const uploads = new WeakSet<Duplex>();

/**
 * Node ends a connection whose request has not arrived whole within a time. For a file only
 * progress counts, not how long it takes.
 */
export function allowLongUpload(socket: Socket, stalledMs = STALL_TIMEOUT_MS): void {
  uploads.add(socket);
  socket.setTimeout(stalledMs);
}

/** For the event `clientError`: not a valid request, or one that did not arrive in time. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && uploads.has(socket)) return;
  const status =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
  if (socket.writable) {
    const body = JSON.stringify({ title: STATUS_CODES[status], status, detail: error.message });
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
        `Content-Type: application/problem+json\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroy(error);
}
