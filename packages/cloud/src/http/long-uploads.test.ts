import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { allowLongUpload, handleClientError } from './long-uploads.ts';

const WITHIN_MS = 200;

describe('an upload that takes its time', () => {
  const server = createServer(
    { requestTimeout: WITHIN_MS, headersTimeout: WITHIN_MS, connectionsCheckingInterval: 20 },
    (request, response) => {
      if (request.url === '/long') allowLongUpload(request.socket);
      if (request.url === '/stalled') allowLongUpload(request.socket, 100);
      text(request).then(
        (body) => response.end(`${body.length}`),
        () => response.destroy(),
      );
    },
  );
  before(async () => {
    server.on('clientError', handleClientError);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => server.close());

  /** Sends a body of ten bytes, one at a time, over twice the time that a request may take. */
  async function send(path: string, between: number): Promise<string> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('utf8');
    socket.on('error', () => undefined);
    let answer = '';
    socket.on('data', (piece: string) => (answer += piece));
    socket.write(`PUT ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 10\r\n\r\n`);
    for (let count = 0; count < 10 && socket.writable; count += 1) {
      await pause(between);
      socket.write('x');
    }
    if (!socket.destroyed) await once(socket, 'close');
    return answer;
  }

  test('is let finish where that is allowed, as long as it goes on', async () => {
    assert.match(await send('/long', WITHIN_MS / 5), /^HTTP\/1\.1 200 [^]*10$/);
    assert.match(await send('/other', WITHIN_MS / 5), /^HTTP\/1\.1 408 /);
    assert.equal(await send('/stalled', 400), '');
  });
});
