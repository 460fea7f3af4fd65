import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { sendJson } from '../raw-http.ts';
import type { FastPathResponse } from './fast-path-exchange.ts';
import { FastPathConnection } from './fast-path-connection.ts';

const SECOND = 1_000;
/** More than the buffers of the system hold. */
const LARGE = JSON.stringify('x'.repeat(50_000_000));

describe('a connection on the fast path', () => {
  let server: Server;
  let client: Socket;
  let accepted: Socket;
  let connection: FastPathConnection;
  /** The paths that were served, and how they are answered. */
  let served: string[];
  let answer: (response: FastPathResponse) => void;
  let accepts: () => boolean | Promise<boolean>;
  let handOver: () => void;

  beforeEach(async () => {
    served = [];
    handOver = () => assert.fail('the fast path serves all of it');
    answer = (response) => sendJson(response, 200, LARGE);
    accepts = () => true;
    server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    [accepted] = (await once(server, 'connection')) as [Socket];
    const service = {
      accepts: () => accepts(),
      serveFastPath: ({ url }: { url: string }, response: FastPathResponse) => {
        served.push(url);
        answer(response);
      },
      closing: false,
    };
    connection = new FastPathConnection({
      socket: accepted,
      handler: service,
      passToNode: () => handOver(),
      rejectTruncated: (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      onClose: () => undefined,
    });
  });
  afterEach(() => {
    client.destroy();
    accepted.destroy();
    server.close();
  });

  /** Sends a request, and waits for the beginning of the response. */
  async function send(path: string, ...headers: string[]): Promise<void> {
    client.write([`GET /v2/${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n'));
    await once(client, 'readable');
  }

  /** Checks the timeout as often as the server does. */
  function checkTimeouts(from: number, seconds: number): void {
    for (let now = from; now <= from + seconds; now += 5) connection.checkTimeout(now * SECOND);
  }

  /** Reads at least this many bytes. */
  async function read(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; ) {
      const piece = client.read() as Buffer | null;
      if (piece === null) await once(client, 'readable');
      else left -= piece.length;
    }
  }

  test('is kept while a response is being read, however slowly', async () => {
    await send('large');
    for (const from of [0, 280, 560]) {
      checkTimeouts(from, 280);
      assert.equal(accepted.destroyed, false, `after ${from + 280} s`);
      await read(10_000_000);
    }
    client.resume();
    while (accepted.writableLength > 0) await new Promise((resolve) => setImmediate(resolve));
    checkTimeouts(900, 75);
    assert.equal(accepted.destroyed, false);
    checkTimeouts(975, 5);
    assert.equal(accepted.destroyed, true);
  });

  test('ends if its client reads nothing', async () => {
    await send('large');
    checkTimeouts(0, 310);
    assert.equal(accepted.destroyed, true);
  });

  test('buffers a limited number of requests of a client that reads nothing', async () => {
    const request = `GET /v2/${'x'.repeat(10_000)} HTTP/1.1\r\nHost: x\r\n\r\n`;
    answer = (response) => sendJson(response, 200, JSON.stringify('x'.repeat(100_000)));
    while (!accepted.isPaused()) {
      client.write(request);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const taken = accepted.bytesRead - served.length * request.length;
    assert.ok(taken < 600_000, `${taken} bytes`);
    const asked = Math.floor((client.bytesWritten + client.writableLength) / request.length);
    client.resume();
    while (served.length < asked) await new Promise((resolve) => setImmediate(resolve));
  });

  test('goes to Node if a request takes long to arrive', async () => {
    const handedOver = new Promise<void>((resolve) => (handOver = resolve));
    client.write('POST /v2/e/run HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"inp');
    while (accepted.bytesRead === 0) await new Promise((resolve) => setImmediate(resolve));
    checkTimeouts(0, 60);
    assert.equal(accepted.destroyed, false);
    checkTimeouts(65, 0);
    await handedOver;
    assert.equal(accepted.destroyed, false);
  });

  test('goes to Node at once if a line ends with a bare line feed', async () => {
    const handedOver = new Promise<void>((resolve) => (handOver = resolve));
    client.write('GET /v2/e/health HTTP/1.1\nHost: x\n\n');
    await handedOver;
  });

  test('goes to Node if more follows a request that closes the connection', async () => {
    const handedOver = new Promise<void>((resolve) => (handOver = resolve));
    const close = 'GET /v2/last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    client.write(`${close}GET /v2/late HTTP/1.1\r\nHost: x\r\n\r\n`);
    await handedOver;
    assert.deepEqual(served, []);
  });

  test('rejects a request that ends before it is whole', async () => {
    client.end('POST /v2/e/run HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"inp');
    const [text] = (await once(client.setEncoding('utf8'), 'data')) as [string];
    assert.match(text, /^HTTP\/1\.1 400 /);
    assert.deepEqual(served, []);
  });

  test('serves nothing after its last response', async () => {
    await send('last', 'Connection: close');
    client.write('GET /v2/late HTTP/1.1\r\nHost: x\r\n\r\n');
    client.resume();
    await once(client, 'close');
    assert.deepEqual(served, ['/v2/last']);
  });

  test('does not serve a request whose client left while it was decided who serves it', async () => {
    const decision = Promise.withResolvers<boolean>();
    accepts = () => decision.promise;
    client.end('GET /v2/asked HTTP/1.1\r\nHost: x\r\n\r\n');
    client.resume();
    await once(accepted, 'end');
    decision.resolve(true);
    await once(client, 'close');
    assert.deepEqual(served, []);
  });
});
