import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { sendJson } from '../raw-http.ts';
import type { FastPathResponse } from './fast-path-exchange.ts';
import { FastPathConnection } from './fast-path-connection.ts';

const SECOND = 1_000;
/** More than the system takes at once. */
const LARGE = JSON.stringify('x'.repeat(50_000_000));

describe('a connection on the fast lane', () => {
  let server: Server;
  let client: Socket;
  let accepted: Socket;
  let lane: FastPathConnection;
  /** What is asked for, and how it is answered. */
  let served: string[];
  let answer: (response: FastPathResponse) => void;
  let wants: () => boolean | Promise<boolean>;
  let handOver: () => void;

  beforeEach(async () => {
    served = [];
    handOver = () => assert.fail('all of it is for the lane');
    answer = (response) => sendJson(response, 200, LARGE);
    wants = () => true;
    server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    [accepted] = (await once(server, 'connection')) as [Socket];
    const service = {
      wants: () => wants(),
      servePlain: ({ url }: { url: string }, response: FastPathResponse) => {
        served.push(url);
        answer(response);
      },
      closing: false,
    };
    lane = new FastPathConnection({
      socket: accepted,
      handler: service,
      passToNode: () => handOver(),
      onClose: () => undefined,
    });
  });
  afterEach(() => {
    client.destroy();
    accepted.destroy();
    server.close();
  });

  /** Asks for it, and reads no more than the beginning. */
  async function ask(path: string, ...headers: string[]): Promise<void> {
    client.write([`GET /v2/${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n'));
    await once(client, 'readable');
  }

  /** Looks at it as often as the server does. */
  function lookFor(from: number, seconds: number): void {
    for (let now = from; now <= from + seconds; now += 5) lane.checkTimeout(now * SECOND);
  }

  /** Reads so many bytes. */
  async function read(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; ) {
      const piece = client.read() as Buffer | null;
      if (piece === null) await once(client, 'readable');
      else left -= piece.length;
    }
  }

  test('is not quiet while an answer is still on its way, however slowly it is read', async () => {
    await ask('large');
    for (const from of [0, 280, 560]) {
      lookFor(from, 280);
      assert.equal(accepted.destroyed, false, `after ${from + 280} s`);
      await read(10_000_000);
    }
    client.resume();
    while (accepted.writableLength > 0) await new Promise((resolve) => setImmediate(resolve));
    lookFor(900, 75);
    assert.equal(accepted.destroyed, false);
    lookFor(975, 5);
    assert.equal(accepted.destroyed, true);
  });

  test('ends where its client reads nothing at all', async () => {
    await ask('large');
    lookFor(0, 310);
    assert.equal(accepted.destroyed, true);
  });

  test('takes no more requests than it can keep from a client that reads nothing', async () => {
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

  test('goes to Node where a request takes long to arrive', async () => {
    const given = new Promise<void>((resolve) => (handOver = resolve));
    client.write('POST /v2/e/run HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"inp');
    while (accepted.bytesRead === 0) await new Promise((resolve) => setImmediate(resolve));
    lookFor(0, 60);
    assert.equal(accepted.destroyed, false);
    lookFor(65, 0);
    await given;
    assert.equal(accepted.destroyed, false);
  });

  test('goes to Node at once where lines end otherwise', async () => {
    const given = new Promise<void>((resolve) => (handOver = resolve));
    client.write('GET /v2/e/health HTTP/1.1\nHost: x\n\n');
    await given;
  });

  test('serves nothing that comes behind its last answer', async () => {
    await ask('last', 'Connection: close');
    client.write('GET /v2/late HTTP/1.1\r\nHost: x\r\n\r\n');
    client.resume();
    await once(client, 'close');
    assert.deepEqual(served, ['/v2/last']);
  });

  test('serves nothing that nobody can be told of once it was found out whose it is', async () => {
    const known = Promise.withResolvers<boolean>();
    wants = () => known.promise;
    client.end('GET /v2/asked HTTP/1.1\r\nHost: x\r\n\r\n');
    client.resume();
    await once(accepted, 'end');
    known.resolve(true);
    await once(client, 'close');
    assert.deepEqual(served, []);
  });
});
