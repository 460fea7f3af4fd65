import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { stopSharedReadBuffer, useSharedReadBuffer } from './shared-read-buffer.ts';

describe('what arrives on an accepted connection', () => {
  let server: Server;
  let client: Socket;
  let accepted: Socket;

  beforeEach(async () => {
    server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    [accepted] = (await once(server, 'connection')) as [Socket];
  });
  afterEach(() => {
    client.destroy();
    accepted.destroy();
    server.close();
  });

  test('is read into the same memory again and again', async () => {
    const read: { text: string; memory: ArrayBufferLike }[] = [];
    let heard: () => void = () => undefined;
    const isInPlace = useSharedReadBuffer(accepted, (bytes) => {
      read.push({ text: bytes.toString(), memory: bytes.buffer });
      heard();
    });
    assert.equal(
      isInPlace,
      true,
      'this version of Node is made otherwise: see whether it now offers onread to servers',
    );
    for (const text of ['one', 'another']) {
      const next = new Promise<void>((resolve) => (heard = resolve));
      client.write(text);
      await next;
    }
    assert.deepEqual(
      read.map(({ text }) => text),
      ['one', 'another'],
    );
    assert.equal(read[0]?.memory, read[1]?.memory);
  });

  test('comes as events once it is for others, each with memory of its own, and no faster than it is read', async () => {
    useSharedReadBuffer(accepted, () => assert.fail('it is for others'));
    stopSharedReadBuffer(accepted);
    const sent = Buffer.alloc(8_000_000, 'abcdefg');
    client.end(sent);
    const pieces: Buffer[] = [];
    for await (const piece of accepted) {
      assert.ok(accepted.readableLength <= 2 * accepted.readableHighWaterMark + 65_536);
      pieces.push(piece as Buffer);
    }
    assert.ok(Buffer.concat(pieces).equals(sent));
  });

  test('comes as events, as ever, where Node is made otherwise', () => {
    assert.equal(
      useSharedReadBuffer(new Socket(), () => undefined),
      false,
    );
  });
});
