import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sendJson } from '../raw-http.ts';
import { installFastPath } from './fast-path.ts';
import type { FastPath } from './fast-path.ts';
import type { FastPathHandler } from './fast-path-connection.ts';

/** The lane serves what is under /v2/lane, Node the rest; both say who they are. */
describe('before a server', () => {
  let server: Server;
  let closing = false;
  let sockets: Socket[] = [];
  let fastPath: FastPath;
  /** What was told of an answer that is too large to leave at once. */
  let heard: string[];

  beforeEach(async () => {
    closing = false;
    sockets = [];
    heard = [];
    server = createServer((request, response) => {
      let body = '';
      request
        .on('data', (chunk: Buffer) => (body += chunk.toString()))
        .on('end', () => response.end(`node ${request.method} ${request.url} ${body}`));
    });
    const service: FastPathHandler = {
      wants: ({ url }) =>
        url.includes('asked') ? pause(5).then(() => url.includes('yes')) : url.startsWith('/v2/lane'),
      servePlain: (request, response) => {
        if (request.url.endsWith('large')) {
          for (const event of ['finish', 'close'] as const) response.on(event, () => heard.push(event));
          return sendJson(response, 200, JSON.stringify('x'.repeat(50_000_000)));
        }
        return void pause(request.url.includes('slow') ? 20 : 0).then(() =>
          sendJson(response, 200, `"lane ${request.url} ${request.body}"`),
        );
      },
      get closing() {
        return closing;
      },
    };
    fastPath = installFastPath(server, service);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  test('a body that is larger than what may wait is read on when it is known whose it is', async () => {
    const body = 'x'.repeat(256 * 1024);
    const { socket, until } = await talk(
      `POST /v2/lane/asked/yes HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
    );
    await pause(30);
    socket.write(body.slice(-1));
    await until('"lane /v2/lane/asked/yes x');
  });

  test('whoever leaves before an answer has left is heard to', async () => {
    const { socket, until } = await talk('GET /v2/lane/large HTTP/1.1\r\nHost: x\r\n\r\n');
    await until('HTTP/1.1 200');
    socket.pause();
    socket.resetAndDestroy();
    while (heard.length === 0) await pause(2);
    assert.deepEqual(heard, ['close']);
  });

  async function talk(
    ...pieces: string[]
  ): Promise<{ socket: Socket; heard: () => string; until: (text: string) => Promise<void> }> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket);
    let heard = '';
    socket.setEncoding('utf8').on('data', (text: string) => (heard += text));
    await once(socket, 'connect');
    for (const piece of pieces) {
      socket.write(piece);
      await pause(2);
    }
    const until = async (text: string): Promise<void> => {
      while (!heard.includes(text)) {
        assert.ok(!socket.destroyed, `closed after ${heard}`);
        await pause(2);
      }
    };
    return { socket, heard: () => heard, until };
  }
  const post = (path: string, body: string, ...headers: string[]): string =>
    ['POST ' + path + ' HTTP/1.1', 'Host: b', `Content-Length: ${Buffer.byteLength(body)}`, ...headers]
      .map((line) => `${line}\r\n`)
      .join('') + `\r\n${body}`;

  test('plain requests are served on the lane, one after the other, however they arrive', async () => {
    const many = ['/v2/lane/slow', '/v2/lane/b', '/v2/lane/c']
      .map((path, index) => post(path, `body ${index} ö`))
      .join('');
    const { heard, until } = await talk(...(many.match(/[\s\S]{1,37}/g) ?? []));
    await until('lane /v2/lane/c body 2 ö');
    const answers = [...heard().matchAll(/"lane (\S+) (.*?)"/g)].map(([, path, body]) => `${path} ${body}`);
    assert.deepEqual(answers, ['/v2/lane/slow body 0 ö', '/v2/lane/b body 1 ö', '/v2/lane/c body 2 ö']);
    assert.match(
      heard(),
      /HTTP\/1\.1 200 OK\r\ncontent-type: application\/json; charset=utf-8\r\ncontent-length: \d+\r\ndate: .* GMT\r\nconnection: keep-alive\r\n/,
    );
  });

  test('what is not for the lane goes to Node with its connection, whole, also after requests that were', async () => {
    const { until, heard } = await talk(
      post('/v2/lane/first', 'x') + post('/v2/other', 'for node') + post('/v2/lane/then', 'z'),
    );
    await until('node POST /v2/lane/then z');
    assert.match(
      heard(),
      /lane \/v2\/lane\/first x[\s\S]*node POST \/v2\/other for node[\s\S]*node POST \/v2\/lane\/then z/,
    );
  });

  test('a large body, a body in pieces and another address go to Node', async () => {
    const large = 'l'.repeat(300_000);
    const one = await talk(post('/v2/lane/large', large));
    await one.until(`node POST /v2/lane/large ${large}`);
    const two = await talk(
      'POST /v2/lane/x HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    );
    await two.until('node POST /v2/lane/x abc');
    const three = await talk('GET / HTTP/1.1\r\nHost: b\r\n\r\n');
    await three.until('node GET / ');
  });

  test('whoever has to be asked first is asked once, and answered either way', async () => {
    const { until } = await talk(post('/v2/asked/yes', '1') + post('/v2/asked/no', '2'));
    await until('node POST /v2/asked/no 2');
  });

  test('what is no HTTP is refused by Node at once', async () => {
    const { socket, until } = await talk('hello?\r\n');
    await until('HTTP/1.1 400 Bad Request');
    if (!socket.destroyed) await once(socket, 'close');
  });

  test('a client that asks for the end of the connection gets it', async () => {
    const { socket, until } = await talk(post('/v2/lane/last', 'x', 'Connection: close'));
    await until('connection: close');
    if (!socket.destroyed) await once(socket, 'close');
  });

  test('a server that stops lets idle connections go, and busy ones when they are answered', async () => {
    const idle = await talk(post('/v2/lane/a', 'x'));
    await idle.until('lane /v2/lane/a x');
    const busy = await talk(post('/v2/lane/slow', 'y'));
    closing = true;
    fastPath.close();
    for (const { socket } of [idle, busy]) if (!socket.destroyed) await once(socket, 'close');
    assert.match(busy.heard(), /lane \/v2\/lane\/slow y/);
  });

  test('whoever is still being answered can be cut off', async () => {
    const { socket, heard } = await talk(post('/v2/lane/slow', 'z'));
    fastPath.destroyConnections();
    if (!socket.destroyed) await once(socket, 'close');
    assert.equal(heard(), '');
  });
});

test('a clock that is set forward ends no connection', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const server = createServer();
  installFastPath(server, { wants: () => true, servePlain: () => undefined, closing: false });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  context.after(() => {
    client.destroy();
    server.close();
  });
  const [accepted] = (await once(server, 'connection')) as [Socket];
  context.mock.timers.tick(5_000);
  const now = Date.now();
  context.mock.method(Date, 'now', () => now + 3_600_000);
  context.mock.timers.tick(5_000);
  assert.equal(accepted.destroyed, false);
});
