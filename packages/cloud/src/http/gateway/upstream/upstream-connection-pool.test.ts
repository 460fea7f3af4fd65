import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { UpstreamConnectionPool } from './upstream-connection-pool.ts';
import type { UpstreamConnection } from './upstream-connection.ts';

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const SECOND_RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil';

describe('the connection pool of the gateway', () => {
  let pool: UpstreamConnectionPool;
  let server: Server;
  let port: number;
  let worker: Socket;

  beforeEach(async () => {
    pool = new UpstreamConnectionPool(5_000);
    server = createServer((socket) => {
      worker = socket;
      socket.on('error', () => socket.destroy());
      socket.on('data', () => socket.write(RESPONSE));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterEach(() => {
    pool.close();
    worker.destroy();
    server.close();
  });

  /** Sends a request; `onEnd` runs at the end of its response, before the event loop continues. */
  function send(connection: UpstreamConnection, onEnd: () => void): Promise<string> {
    return new Promise((resolve, reject) => {
      let body = '';
      connection.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      connection.begin('GET', {
        connected: () => undefined,
        drained: () => undefined,
        head: () => undefined,
        data: (chunk) => (body += chunk.toString()),
        batchParsed: () => undefined,
        upgraded: () => assert.fail('nobody asked for an upgrade'),
        broken: reject,
        end: () => {
          onEnd();
          resolve(body);
        },
      });
    });
  }
  const turns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };

  test('gives a connection out again after its response', async () => {
    const connection = pool.acquire('127.0.0.1', port);
    await send(connection, () => pool.release(connection));
    await turns(3);
    assert.equal(pool.acquire('127.0.0.1', port), connection);
    connection.destroy();
  });

  test('does not give it out before the event loop has polled it once more', async () => {
    const connection = pool.acquire('127.0.0.1', port);
    let next: UpstreamConnection | undefined;
    await send(connection, () => {
      pool.release(connection);
      next = pool.acquire('127.0.0.1', port);
    });
    assert.notEqual(next, connection);
    next?.destroy();
  });

  test('never reuses a connection with unread bytes', async () => {
    const connection = pool.acquire('127.0.0.1', port);
    // The second response is in the buffers of the system when the first one ends.
    await send(connection, () => {
      worker.write(SECOND_RESPONSE);
      pool.release(connection);
    });
    await turns(3);
    assert.equal(connection.socket.destroyed, true);
    const next = pool.acquire('127.0.0.1', port);
    assert.notEqual(next, connection);
    assert.equal(await send(next, () => next.destroy()), 'ok');
  });

  test('closes a connection on which such bytes come while it is idle', async () => {
    const connection = pool.acquire('127.0.0.1', port);
    await send(connection, () => pool.release(connection));
    await turns(3);
    worker.write(SECOND_RESPONSE);
    await once(connection.socket, 'close');
    const next = pool.acquire('127.0.0.1', port);
    assert.notEqual(next, connection);
    next.destroy();
  });
});
