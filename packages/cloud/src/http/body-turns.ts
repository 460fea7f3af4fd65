import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { FairTurns } from '../support/fair-turns.ts';
import { accountOf } from './connection-limit.ts';

/**
 * What is received of the large bodies of one account before it waits for its next turn. A single upload of 1 GB over
 * S3 takes 4.5 % longer than without turns. On a busy server a turn takes 10 ms, and a client that sends as much as it can
 * gets 6 MB/s instead of all of the server's time.
 */
const TURN_BYTES = 64 * 1024;

const bodyTurns = new FairTurns();

/** Those that have shown no key share one turn. */
function nextTurn(request: IncomingMessage): Promise<void> {
  return bodyTurns.next(accountOf(request.socket) ?? '');
}

/** Reads a body with listeners for `data`, and in the turns of its account. */
export function receiveInTurns(request: IncomingMessage): void {
  let bytes = 0;
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes < TURN_BYTES) return;
    bytes = 0;
    request.pause();
    void nextTurn(request).then(() => request.resume());
  });
}

/** The same for a body that is read as a stream of pieces. */
export async function* piecesInTurns(
  request: IncomingMessage,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const piece of pieces) {
    yield piece;
    bytes += piece.length;
    if (bytes < TURN_BYTES) continue;
    bytes = 0;
    await nextTurn(request);
  }
}

/** The same as a stream. Who ends it early leaves the request open, so that the response arrives. */
export function streamInTurns(request: IncomingMessage, body: Readable = request): Readable {
  return Readable.from(piecesInTurns(request, body.iterator({ destroyOnReturn: false })), {
    objectMode: false,
  });
}

/**
 * Reads the rest of a body and discards it: closing on a client that still sends would lose the response. After so many
 * bytes the connection is closed anyway.
 */
export function discardBody(request: IncomingMessage, maxBytes = Infinity): void {
  if (request.complete || request.readableEnded || request.destroyed) return void request.resume();
  let discarded = 0;
  request.on('data', (piece: Buffer) => {
    discarded += piece.length;
    if (discarded > maxBytes) request.destroy();
  });
  receiveInTurns(request);
  request.resume();
}
