import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createLog } from '../support/log.ts';
import { discardBody, piecesInTurns } from './body-turns.ts';
import { claimConnection, ConnectionLimit } from './connection-limit.ts';
import { readBody } from './raw-http.ts';

const PIECE = Buffer.alloc(64 * 1024, 'x');
const PIECES = 10;
const limit = new ConnectionLimit({ max: 1_000 }, createLog({ level: 'silent', format: 'json' }));

/** A request of this account whose body has arrived. */
function requestOf(account: string, onPiece: () => void = () => undefined): IncomingMessage {
  const socket = new Socket();
  limit.admit(socket);
  claimConnection(socket, account);
  function* body(): Generator<Buffer> {
    for (let count = 0; count < PIECES; count += 1) {
      onPiece();
      yield PIECE;
    }
  }
  const state = { headers: {}, complete: false, socket };
  return Object.assign(Readable.from(body(), { highWaterMark: 1 }), state) as unknown as IncomingMessage;
}

async function readAll(request: IncomingMessage): Promise<void> {
  for await (const piece of piecesInTurns(request, request)) assert.equal(piece.length, PIECE.length);
}

for (const [what, flood] of [
  ['read', (request: IncomingMessage) => void readBody(request, Infinity)],
  ['streamed', (request: IncomingMessage) => void readAll(request)],
  ['discarded', (request: IncomingMessage) => discardBody(request)],
] as const)
  test(`the large bodies of an account are ${what} piece by piece, in turn with those of others`, async () => {
    let pieces = 0;
    for (let request = 0; request < 50; request += 1) flood(requestOf('flooder', () => (pieces += 1)));
    const before = pieces;
    await readAll(requestOf('other'));
    // A piece for each of the other's; each request has begun with one, and has another one ready.
    assert.ok(pieces - before <= 3 * PIECES + 2 * 50, `${pieces - before} of ${50 * PIECES}`);
  });
