import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { ChannelConnection, MAX_WRITE_LENGTH } from './channel-connection.ts';

const QUIET = {
  line: () => undefined,
  beforeWrite: () => undefined,
  drained: () => undefined,
  closed: () => undefined,
};

describe('large lines on a channel', () => {
  let near: Socket;
  let far: Socket;
  let written: number[];

  beforeEach(async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    near = connect((server.address() as AddressInfo).port, '127.0.0.1');
    [far] = (await once(server, 'connection')) as [Socket];
    server.close();
    written = [];
    const write = near.write.bind(near);
    near.write = (piece: string) => {
      written.push(piece.length);
      return write(piece);
    };
  });
  afterEach(() => {
    near.destroy();
    far.destroy();
  });

  const large = (letter: string, size: number): string => letter.repeat(size * MAX_WRITE_LENGTH);
  const lines = ['first', large('a', 0.75), large('b', 0.75), 'between', large('c', 2), 'last'];

  test('are written one after the other, not as one string', { timeout: 10_000 }, async () => {
    const channel = new ChannelConnection(near, Buffer.alloc(0), QUIET);
    for (const line of lines) channel.send(line);
    const all = `${lines.join('\n')}\n`;
    let came = 0;
    for await (const piece of far as AsyncIterable<Buffer>) {
      came += piece.length;
      if (came === all.length) break;
    }
    assert.deepEqual(
      written,
      [lines.slice(0, 2), lines.slice(2, 4), lines.slice(4, 5), lines.slice(5)].map(
        (some) => some.join('\n').length + 1,
      ),
    );
    channel.destroy();
  });

  test('are all written before the connection ends', { timeout: 10_000 }, async () => {
    const channel = new ChannelConnection(near, Buffer.alloc(0), QUIET);
    for (const line of lines) channel.send(line);
    channel.end(10_000);
    const came = await text(far);
    assert.ok(came === `${lines.join('\n')}\n`);
    assert.equal(written.length, 4);
  });
});
